//! The Python process that draws cases.

use std::io::{self, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{Case, Header, is_judged};
use kilim_test_support::material::root;

/// Which cases are drawn. The same numbers give the same cases.
#[derive(Clone, Debug)]
pub struct Draw {
    pub seed: u64,
    /// The number of the first case, and how far it is to the next.
    pub first: u64,
    pub step: u64,
    pub cases: u64,
    /// Only cases about these operators, separated by commas; empty for all.
    pub ops: String,
    /// Instead of the first case, the parts of its graph, smallest first.
    pub smaller: bool,
    /// Single operators, compared with onnxruntime, instead of graphs, compared with float64.
    pub peers: bool,
}

/// A source of cases.
pub struct Generator {
    child: Option<Child>,
    source: Box<dyn Read + Send>,
}

impl Generator {
    /// Starts `tools/fuzz/main.py`, or `peers.py`.
    pub fn start(python: &Path, draw: &Draw) -> io::Result<Generator> {
        let mut command = Command::new(python);
        let script = if draw.peers { "peers.py" } else { "main.py" };
        command.arg(root().join("tools/fuzz").join(script));
        for (name, value) in [
            ("--seed", draw.seed),
            ("--first", draw.first),
            ("--step", draw.step),
            ("--cases", draw.cases),
        ] {
            command.arg(name).arg(value.to_string());
        }
        command.arg("--ops").arg(&draw.ops);
        if draw.smaller {
            command.arg("--smaller");
        }
        Generator::reading(command)
    }

    /// Starts another script of `tools/fuzz`, which makes cases of those of the ONNX suite.
    pub fn of(script: &str, python: &Path, args: &[&str]) -> io::Result<Generator> {
        let mut command = Command::new(python);
        command
            .arg(root().join("tools/fuzz").join(script))
            .args(args);
        Generator::reading(command)
    }

    fn reading(mut command: Command) -> io::Result<Generator> {
        // One core each: there are as many generators as cores.
        command.env("OPENBLAS_NUM_THREADS", "1");
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let pipe = child.stdout.take();
        let pipe = pipe.ok_or_else(|| io::Error::other("no pipe from Python"))?;
        Ok(Generator {
            child: Some(child),
            source: Box::new(BufReader::with_capacity(1 << 18, pipe)),
        })
    }

    /// Reads cases that were written before.
    pub fn replay(file: &Path) -> io::Result<Generator> {
        Ok(Generator {
            child: None,
            source: Box::new(BufReader::new(std::fs::File::open(file)?)),
        })
    }

    fn part(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut length = [0; 4];
        match self.source.read_exact(&mut length) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let mut data = vec![0; u32::from_le_bytes(length) as usize];
        self.source.read_exact(&mut data)?;
        Ok(Some(data))
    }

    /// The next case; `None` at the end.
    ///
    /// # Errors
    /// Where the generator failed before its end.
    pub fn read(&mut self) -> io::Result<Option<Case>> {
        let Some(first) = self.part()? else {
            return match self.child.as_mut().map(Child::wait).transpose()? {
                Some(status) if !status.success() => {
                    Err(io::Error::other(format!("the generator failed: {status}")))
                }
                _ => Ok(None),
            };
        };
        let header: Header = serde_json::from_slice(&first)?;
        let slacks = header.outputs.iter().filter(|o| is_judged(o));
        let rest = 1 + header.inputs + header.outputs.len() + slacks.count();
        let mut parts = vec![first];
        for _ in 0..rest {
            let part = self.part()?;
            parts.push(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        }
        Ok(Some(Case { header, parts }))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
