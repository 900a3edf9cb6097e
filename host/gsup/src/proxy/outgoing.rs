use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// What waits to be written, in order: pieces of what was read, and what we write ourselves.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pieces: VecDeque<Bytes>,
    /// What we wrote behind the last piece: many small frames are one piece.
    written: BytesMut,
    waiting: usize,
    /// The first pieces that were there at the last [`Outgoing::expire`].
    old: usize,
}

impl Outgoing {
    /// A piece of what was read.
    pub(super) fn pass(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.seal();
        self.waiting += piece.len();
        self.pieces.push_back(piece);
    }

    /// Frames of our own.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let before = self.written.len();
        write(&mut self.written);
        self.waiting += self.written.len() - before;
    }

    /// A piece that goes before all others.
    pub(super) fn put_first(&mut self, piece: Bytes) {
        self.waiting += piece.len();
        self.pieces.push_front(piece);
        self.old = 0;
    }

    /// Drops what was here at the last call already, and nothing has been taken since.
    pub(super) fn expire(&mut self) {
        self.seal();
        for piece in self.pieces.drain(..self.old.min(self.pieces.len())) {
            self.waiting -= piece.len();
        }
        self.old = self.pieces.len();
    }

    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.pieces
            .pop_front()
            .or_else(|| {
                let piece = self.written.split().freeze();
                (!piece.is_empty()).then_some(piece)
            })
            .inspect(|piece| self.waiting -= piece.len())
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    fn seal(&mut self) {
        if !self.written.is_empty() {
            self.pieces.push_back(self.written.split().freeze());
        }
    }
}
