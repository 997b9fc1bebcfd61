//! `kilim transcribe`, on a Whisper model that knows digits which are tones.

use std::fs;
use std::path::{Path, PathBuf};

use kilim_test_support::archive::Cases;
use kilim_test_support::tones::{ENGLISH, recording, sound, wav};
use serde_json::Value;

use crate::support::{fails, folder, ok};

/// A folder with that model and a recording, `said.wav`.
fn whisper(name: &str) -> PathBuf {
    let folder = folder(name);
    let cases = Cases::of("speech");
    let files = cases.archive.entries();
    for (path, _) in files.filter(|(path, _)| path.starts_with("whisper/")) {
        let name = path.trim_start_matches("whisper/");
        fs::write(folder.join(name), cases.file(path)).expect("the file can be written");
    }
    let samples = sound(&recording().0, ENGLISH, 6.3);
    fs::write(folder.join("said.wav"), wav(&samples)).expect("the sound can be written");
    folder
}

fn arguments(folder: &Path, more: &[&str]) -> Vec<String> {
    let sound = folder.join("said.wav").display().to_string();
    let folder = folder.display().to_string();
    let args = ["transcribe", &folder, &sound, "--backends", "cpu"].map(str::to_string);
    args.iter()
        .cloned()
        .chain(more.iter().map(|arg| arg.to_string()))
        .collect()
}

fn transcribed(folder: &Path, more: &[&str]) -> String {
    let args = arguments(folder, more);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    ok(&args)
}

#[test]
fn a_recording_is_written_part_by_part() {
    let folder = whisper("transcribe");
    let written = recording().1;
    let lines = transcribed(&folder, &[]);
    assert_eq!(lines.lines().collect::<Vec<_>>().join(" "), written);
    let made: Value = serde_json::from_str(&transcribed(&folder, &["--json"])).expect("JSON");
    assert_eq!(made["text"], written);
    assert_eq!(made["language"], "en");
    assert_eq!(made["parts"].as_array().map(Vec::len), Some(6));
    assert!(
        made["seconds"]
            .as_f64()
            .is_some_and(|seconds| seconds > 0.0)
    );
    let timed = transcribed(&folder, &["--format", "times"]);
    assert!(timed.starts_with("00:00:00."), "{timed}");
    let subtitles = transcribed(&folder, &["--format", "srt"]);
    let (number, rest) = subtitles.split_once('\n').expect("several lines");
    assert_eq!(number, "1");
    assert!(
        rest.starts_with("00:00:00,") && rest.contains(" --> "),
        "{rest}"
    );
    let subtitles = transcribed(&folder, &["--format", "vtt"]);
    assert!(subtitles.starts_with("WEBVTT\n\n00:00:00."), "{subtitles}");
    fs::remove_dir_all(folder).expect("the folder can be removed");
}

#[test]
fn a_file_of_whisper_cpp_stands_for_a_folder() {
    let folder = folder("transcribe-ggml");
    let cases = Cases::of("whisper");
    let [file, sound_file] = ["ggml-model.bin", "said.wav"].map(|name| folder.join(name));
    fs::write(&file, cases.file("packed/ggml-model.bin")).expect("the file can be written");
    let (phrases, written) = recording();
    let samples = wav(&sound(&phrases, ENGLISH, 6.3));
    fs::write(&sound_file, samples).expect("the sound can be written");
    let [file, sound_file] = [file, sound_file].map(|path| path.display().to_string());
    let lines = ok(&["transcribe", &file, &sound_file, "--backends", "cpu"]);
    assert_eq!(lines.lines().collect::<Vec<_>>().join(" "), written);
    fs::remove_dir_all(folder).expect("the folder can be removed");
}

#[test]
fn what_cannot_be_written_is_told() {
    let folder = whisper("transcribe-errors");
    let fail = |code, more: &[&str]| {
        let args = arguments(&folder, more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        fails(code, &args)
    };
    let error = fail(3, &["--language", "la"]);
    assert!(
        error.contains("INVALID_VALUE") && error.contains("`la`"),
        "{error}"
    );
    let error = fail(4, &["--kind", "q4"]);
    assert!(error.contains("encoder_model_q4.onnx"), "{error}");
    fs::write(folder.join("said.wav"), "no sound").expect("the file can be written");
    let error = fail(3, &[]);
    assert!(
        error.contains("UNSUPPORTED") && error.contains("ffmpeg"),
        "{error}"
    );
    fs::remove_dir_all(folder).expect("the folder can be removed");
}
