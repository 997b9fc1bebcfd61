//! Cast from and to strings. Numbers are written in decimal, as short as tells them apart, infinities
//! as `INF`; read are decimal and scientific forms, `INF` and `NaN` in any case.

use kilim_core::error::value_error;
use kilim_core::{DType, Result};
use kilim_host::elements::{Class, Codec, Wide};
use kilim_host::{Io, Kernel};

/// A kernel from text to numbers of type `to`.
pub fn parser(to: DType) -> Box<dyn Kernel> {
    match to {
        DType::U64 => Box::new(Parse {
            to: u64::codec(to),
            number: |text| text.parse().or_else(|_| real(text).map(|v| v as u64)),
        }),
        DType::F32 => Box::new(Parse {
            to: f32::codec(to),
            number: |text| text.parse().map_err(|_| ()),
        }),
        _ if Class::of(to) == Class::I64 && to != DType::Bool => Box::new(Parse {
            to: i64::codec(to),
            number: |text| text.parse().or_else(|_| real(text).map(|v| v as i64)),
        }),
        _ => Box::new(Parse {
            to: f64::codec(to),
            number: real,
        }),
    }
}

fn real(text: &str) -> std::result::Result<f64, ()> {
    text.parse().map_err(|_| ())
}

/// Operations of reading or writing a number, beside those for the bytes.
const COST: usize = 64;
/// Bytes of a text that is read as a number.
const LONGEST: usize = 1 << 20;

struct Parse<W> {
    to: Codec<W>,
    number: fn(&str) -> std::result::Result<W, ()>,
}

impl<W: Wide> Kernel for Parse<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input::<u32>(0);
        let (cpu, y) = (io.cpu(), io.output_bytes(0));
        let texts = io.texts();
        for (i, &x) in x.iter().enumerate() {
            let text = texts.text(x);
            cpu.spend(COST + text.len())?;
            if text.len() > LONGEST {
                return Err(value_error("a text is too long for a number")
                    .with_expected(format!("at most {LONGEST} bytes"))
                    .with_got(format!("{} bytes", text.len())));
            }
            let number = (self.number)(text.trim());
            let number = number.map_err(|()| value_error("a text is no number").with_got(text))?;
            self.to.set(y, i, number);
        }
        Ok(())
    }
}

/// A kernel from numbers of type `from` to text.
pub fn writer(from: DType) -> Box<dyn Kernel> {
    match Class::of(from) {
        Class::F32 => written::<f32>(from, |v| real_text(v.into(), &v)),
        Class::F64 => written::<f64>(from, |v| real_text(v, &v)),
        Class::I64 => written::<i64>(from, |v| v.to_string()),
        Class::U64 => written::<u64>(from, |v| v.to_string()),
    }
}

fn real_text(value: f64, shortest: &dyn std::fmt::Display) -> String {
    match value {
        f64::INFINITY => "INF".to_string(),
        f64::NEG_INFINITY => "-INF".to_string(),
        _ => shortest.to_string(),
    }
}

fn written<W: Wide>(from: DType, text: fn(W) -> String) -> Box<dyn Kernel> {
    Box::new(Write {
        from: W::codec(from),
        text,
    })
}

struct Write<W> {
    from: Codec<W>,
    text: fn(W) -> String,
}

impl<W: Wide> Kernel for Write<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, x) = (io.cpu(), io.input_bytes(0));
        for (i, y) in io.output::<u32>(0).iter_mut().enumerate() {
            cpu.spend(COST)?;
            let text = (self.text)(self.from.get(x, i));
            *y = io.texts().number_of(cpu, &[&text])?;
        }
        Ok(())
    }
}
