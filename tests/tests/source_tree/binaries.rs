//! Checks that every program ends quietly when the reader of its output is gone.

use std::fs;

#[test]
fn every_program_ends_quietly_when_nobody_reads_its_output() {
    let host = workspace::root().join("host");
    let mut programs = 0;
    for folder in fs::read_dir(&host).unwrap() {
        let main = folder.unwrap().path().join("src/main.rs");
        let Ok(source) = fs::read_to_string(&main) else { continue };
        programs += 1;
        assert!(
            source.contains("broken_pipe::end_quietly();"),
            "{}: see the crate broken-pipe",
            main.display()
        );
    }
    assert!(programs >= 5, "{programs} programs");
}
