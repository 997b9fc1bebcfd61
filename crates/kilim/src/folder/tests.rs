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

fn bytes_of((buffer, at): &(Arc<AlignedBytes>, usize), len: usize) -> &[u8] {
    &buffer.as_slice()[*at..at + len]
}

#[test]
fn only_what_is_needed_is_read() {
    let place = Place::new("parts").unwrap();
    let data: Vec<u8> = (0..100).collect();
    place.write("model/w.bin", &data).unwrap();
    let folder = place.folder(false);
    assert_eq!(folder.size("w.bin").unwrap(), 100);
    let first = folder.part("w.bin", 10, 20).unwrap();
    assert_eq!(bytes_of(&first, 20), &data[10..30]);
    assert_eq!(first.0.len(), 20);
    let again = folder.part("w.bin", 10, 20).unwrap();
    assert!(Arc::ptr_eq(&first.0, &again.0));
}

#[test]
fn parts_that_overlap_take_no_more_than_the_file() {
    let place = Place::new("overlap").unwrap();
    let data: Vec<u8> = (0..100).collect();
    place.write("model/w.bin", &data).unwrap();
    let folder = place.folder(false);
    let mut buffers: HashMap<*const AlignedBytes, usize> = HashMap::new();
    let mut kept = Vec::new();
    for offset in 0..50 {
        let part = folder.part("w.bin", offset, 50).unwrap();
        assert_eq!(bytes_of(&part, 50), &data[offset..offset + 50]);
        buffers.insert(Arc::as_ptr(&part.0), part.0.len());
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
        .map(|path| folder.part(path, 0, 64).unwrap().0);
    assert!(parts.iter().all(|part| Arc::ptr_eq(part, &parts[0])));
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
        assert_eq!(bytes_of(&allowed.part(path, 0, 8).unwrap(), 8), &[1; 8]);
    }
}
