use kilim_core::DType;
use kilim_formats::LARGE;

use super::*;

/// A folder of its own for a test, with the model's folder in it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> std::io::Result<Place> {
        let path = std::env::temp_dir().join(format!("kilim-folder-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("model/data"))?;
        Ok(Place(path))
    }

    fn write(&self, path: &str, bytes: &[u8]) -> std::io::Result<()> {
        std::fs::write(self.0.join(path), bytes)
    }

    fn folder(&self, follow_links: bool) -> Folder {
        Folder::of(&self.0.join("model/m.onnx"), follow_links)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The bytes of a part, and the first one's address.
fn bytes_of(part: &Tensor) -> (&[u8], *const u8) {
    let bytes = part.read().unwrap();
    (bytes, bytes.as_ptr())
}

#[test]
fn only_what_is_needed_is_read() {
    let place = Place::new("parts").unwrap();
    let data: Vec<u8> = (0..100).collect();
    place.write("model/w.bin", &data).unwrap();
    let folder = place.folder(false);
    assert_eq!(folder.size("w.bin").unwrap(), 100);
    let first = folder.part("w.bin", 10, 20).unwrap();
    assert_eq!(bytes_of(&first).0, &data[10..30]);
    let again = folder.part("w.bin", 10, 20).unwrap();
    assert_eq!(bytes_of(&first).1, bytes_of(&again).1);
}

fn in_memory(tensor: &Tensor) -> usize {
    let mut sum = 0;
    tensor.buffers(&mut |_, bytes| sum += bytes);
    sum
}

#[test]
fn large_parts_are_read_when_they_are_needed() {
    let place = Place::new("large").unwrap();
    let data: Vec<u8> = (0..4 * LARGE).map(|i| (i % 251) as u8).collect();
    place.write("model/w.bin", &data).unwrap();
    let part = place.folder(false).part("w.bin", 5, 2 * LARGE).unwrap();
    let elements = part.bytes_as(DType::F32, &[LARGE / 2]).unwrap();
    assert_eq!(in_memory(&elements), 0);
    for _ in 0..2 {
        let unread = elements.unread();
        assert_eq!(unread.read().unwrap(), &data[5..][..2 * LARGE]);
        assert_eq!(in_memory(&elements), 0);
    }
    // What was read stays right; what is read of another file is an error.
    let before = elements.unread();
    before.read().unwrap();
    place.write("model/w.bin", &data[1..]).unwrap();
    assert_eq!(before.read().unwrap(), &data[5..][..2 * LARGE]);
    let error = elements.read().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Io);
    assert!(error.to_string().contains("`w.bin` changed"), "{error}");
}

#[test]
fn a_model_of_many_files_keeps_few_open() {
    let place = Place::new("many").unwrap();
    let folder = place.folder(false);
    let parts: Vec<Tensor> = (0..2 * HELD)
        .map(|i| {
            let name = format!("w{i}.bin");
            place
                .write(&format!("model/{name}"), &vec![i as u8; LARGE])
                .unwrap();
            folder.part(&name, 0, LARGE).unwrap()
        })
        .collect();
    let read = parts.iter().filter(|part| in_memory(part) > 0).count();
    assert_eq!(read, HELD);
    for (i, part) in parts.iter().enumerate() {
        assert_eq!(part.read().unwrap()[LARGE - 1], i as u8);
    }
}

#[test]
fn parts_that_overlap_take_no_more_than_the_file() {
    let place = Place::new("overlap").unwrap();
    let data: Vec<u8> = (0..100).collect();
    place.write("model/w.bin", &data).unwrap();
    let folder = place.folder(false);
    let mut buffers: HashMap<usize, usize> = HashMap::new();
    let mut kept = Vec::new();
    for offset in 0..50 {
        let part = folder.part("w.bin", offset, 50).unwrap();
        assert_eq!(bytes_of(&part).0, &data[offset as usize..][..50]);
        part.buffers(&mut |address, bytes| {
            buffers.insert(address, bytes);
        });
        kept.push(part);
    }
    assert!(buffers.values().sum::<usize>() <= 200, "{buffers:?}");
}

#[test]
fn a_file_of_several_spellings_is_opened_once() {
    let place = Place::new("spellings").unwrap();
    place.write("model/data/w.bin", &[7; 64]).unwrap();
    let folder = place.folder(false);
    let parts = ["data/w.bin", "./data/w.bin", "data/./w.bin", "data//w.bin"]
        .map(|path| folder.part(path, 0, 64).unwrap());
    let first = bytes_of(&parts[0]).1;
    assert!(parts.iter().all(|part| bytes_of(part).1 == first));
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let place = Place::new("regular").unwrap();
    let folder = place.folder(true);
    for path in ["data", "missing.bin"] {
        let error = folder.size(path).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Io, "{path}");
        assert!(error.to_string().contains(path), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused_and_never_waited_for() {
    let place = Place::new("pipes").unwrap();
    let pipe = place.0.join("model/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", place.0.join("model/zero")).unwrap();
    let folder = place.folder(true);
    for path in ["pipe", "zero"] {
        let error = folder.size(path).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Io, "{path}");
        assert!(error.to_string().contains("no regular file"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn links_lead_out_of_the_folder_only_where_that_is_allowed() {
    use std::os::unix::fs::symlink;
    let place = Place::new("links").unwrap();
    place.write("secret", &[1; 8]).unwrap();
    place.write("model/data/w.bin", &[2; 8]).unwrap();
    symlink("../secret", place.0.join("model/out.bin")).unwrap();
    symlink("..", place.0.join("model/up")).unwrap();
    symlink("data/w.bin", place.0.join("model/inside.bin")).unwrap();
    let folder = place.folder(false);
    assert_eq!(folder.size("inside.bin").unwrap(), 8);
    for path in ["out.bin", "up/secret"] {
        let error = folder.size(path).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidModel, "{path}");
        assert!(error.hint().unwrap().contains("follow_links"), "{error}");
        let allowed = place.folder(true);
        let part = allowed.part(path, 0, 8).unwrap();
        assert_eq!(bytes_of(&part).0, &[1; 8]);
    }
}

#[test]
fn a_package_names_its_model() {
    let place = Place::new("package").unwrap();
    let package = place.0.join("model");
    assert_eq!(package_model(&package, false).unwrap(), None);
    std::fs::create_dir(package.join("metadata")).unwrap();
    let manifest = r#"{"models": ["data/m.circle"], "model-types": ["circle"]}"#;
    place
        .write("model/metadata/MANIFEST", manifest.as_bytes())
        .unwrap();
    let missing = package_model(&package, false).unwrap_err();
    assert_eq!(missing.code(), ErrorCode::Io);
    place.write("model/data/m.circle", b"").unwrap();
    let model = package_model(&package, false).unwrap().unwrap();
    assert!(model.ends_with("model/data/m.circle"), "{model:?}");
    place
        .write("model/metadata/MANIFEST", b"no manifest")
        .unwrap();
    let garbled = package_model(&package, false).unwrap_err();
    assert_eq!(garbled.code(), ErrorCode::InvalidModel);
}
