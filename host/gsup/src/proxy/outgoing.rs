use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// An output queue: pieces of the input, and own frames.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pieces: VecDeque<Bytes>,
    /// Own frames after the last piece: small frames are collected into one piece.
    pending_frames: BytesMut,
    waiting: usize,
    /// Number of pieces that were queued at the last [`Outgoing::expire`].
    old_pieces: usize,
}

impl Outgoing {
    /// Appends a piece of the input.
    pub(super) fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.seal();
        self.waiting += piece.len();
        self.pieces.push_back(piece);
    }

    /// Appends own frames.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let before = self.pending_frames.len();
        write(&mut self.pending_frames);
        self.waiting += self.pending_frames.len() - before;
    }

    /// Inserts a piece before all others.
    pub(super) fn put_first(&mut self, piece: Bytes) {
        self.waiting += piece.len();
        self.pieces.push_front(piece);
        self.old_pieces = 0;
    }

    /// Drops the pieces that were already queued at the last call.
    pub(super) fn expire(&mut self) {
        self.seal();
        for piece in self.pieces.drain(..self.old_pieces.min(self.pieces.len())) {
            self.waiting -= piece.len();
        }
        self.old_pieces = self.pieces.len();
    }

    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.pieces
            .pop_front()
            .or_else(|| {
                let piece = self.pending_frames.split().freeze();
                (!piece.is_empty()).then_some(piece)
            })
            .inspect(|piece| self.waiting -= piece.len())
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    fn seal(&mut self) {
        if !self.pending_frames.is_empty() {
            self.pieces.push_back(self.pending_frames.split().freeze());
        }
    }
}
