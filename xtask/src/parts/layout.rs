//! Where the linker has put each piece of the data, and which refer to which. What it tells of that (`--emit-relocs`) holds for the
//! binary that it wrote; addresses stay what they are in all that is made of it.

use super::binary::Segments;
use anyhow::{Context, Result, bail, ensure};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use wasm_encoder::{Module, RawSection};
use wasmparser::{
    BinaryReader, KnownCustom, Linking, Parser, Payload, RelocSectionReader, RelocationEntry,
    RelocationType, SymbolInfo,
};

/// A piece of data that code and other data refer to as one.
#[derive(Debug, PartialEq)]
pub struct Piece {
    /// Where it lies in the memory.
    pub place: Range<u32>,
    /// Whether nothing writes to it.
    pub constant: bool,
    /// Whether it says where in a source file a panic would be.
    pub location: bool,
    /// The numbers of the pieces that it holds addresses of.
    pub refers: Vec<usize>,
}

/// The pieces of a binary's data.
#[derive(Debug)]
pub struct Layout {
    /// In the order of their places; none overlap.
    pub pieces: Vec<Piece>,
    /// The pieces that are referred to by data without a place: every thread has a copy of that data.
    pub copied: Vec<usize>,
    /// The addresses that the linker has put into code.
    put: HashSet<u32>,
    /// Addresses in code that speak of a piece they do not lie in: of its end, or of what is before it.
    beside: HashMap<u32, Vec<usize>>,
    /// Who knows the places in the table that the linker has put somewhere, by the place.
    named: HashMap<u32, Named>,
}

/// Who knows a place in the table, and so may call what stands there.
#[derive(Debug, Default)]
struct Named {
    /// The numbers of the pieces that hold it.
    pieces: Vec<usize>,
    /// Whether code knows it, or data without a place.
    by_others: bool,
}

/// How the name of the segment begins that the linker puts constants into.
const CONSTANTS: &str = ".rodata";

impl Layout {
    /// Reads what the linker wrote.
    ///
    /// # Errors
    /// Where it holds what is not known here, or nothing of relocations.
    pub fn read(linked: &[u8]) -> Result<Self> {
        let mut segments = Segments::default();
        let (mut section, mut code, mut names) = (0, 0, Vec::new());
        let (mut symbols, mut relocations) = (Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(linked) {
            let payload = payload?;
            segments.meet(&payload)?;
            if let Payload::CodeSectionStart { .. } = payload {
                let (_, range) = payload.as_section().context("the code has no place")?;
                code = range.start as u32;
            }
            match payload {
                Payload::DataSection(data) => section = data.range().start as u32,
                Payload::CustomSection(custom) => match custom.as_known() {
                    KnownCustom::Linking(linking) => {
                        for part in linking {
                            match part? {
                                Linking::SegmentInfo(list) => {
                                    for segment in list {
                                        names.push(segment?.name);
                                    }
                                }
                                Linking::SymbolTable(list) => {
                                    symbols = list.into_iter().collect::<Result<_, _>>()?;
                                }
                                _ => {}
                            }
                        }
                    }
                    KnownCustom::Reloc(list) => relocations.push((custom.name(), list)),
                    _ => {}
                },
                _ => {}
            }
        }
        ensure!(
            !symbols.is_empty(),
            "the linker has not told where it put what"
        );
        let reader = Reader {
            file: linked,
            section,
            code,
            segments,
            names,
            symbols,
        };
        reader.layout(relocations)
    }

    /// The pieces that a number in code may be an address of.
    pub fn spoken_of(&self, address: u32) -> impl Iterator<Item = usize> {
        // Numbers such as 0x110000, where Unicode ends.
        let round = address.wrapping_add(2) & 0xffff < 4 && !self.put.contains(&address);
        let beside = self.beside.get(&address).into_iter().flatten();
        let holder = holder(&self.pieces, address).filter(|_| !round);
        holder.into_iter().chain(beside.copied())
    }

    /// The pieces that know a place in the table. None where others may know it, too.
    pub fn naming(&self, slot: u32) -> Option<&[usize]> {
        let named = self.named.get(&slot).filter(|named| !named.by_others)?;
        Some(&named.pieces)
    }
}

/// The binary without what the linker tells of data and code, which holds for no other.
///
/// # Errors
/// Where it is no binary.
pub fn without_relocations(linked: &[u8]) -> Result<Vec<u8>> {
    let mut module = Module::new();
    for payload in Parser::new(0).parse_all(linked) {
        let payload = payload?;
        if let Payload::CustomSection(custom) = &payload
            && let KnownCustom::Linking(_) | KnownCustom::Reloc(_) = custom.as_known()
        {
            continue;
        }
        if let Some((id, range)) = payload.as_section() {
            let data = &linked[range.start as usize..range.end as usize];
            module.section(&RawSection { id, data });
        }
    }
    Ok(module.finish())
}

/// The piece that an address lies in.
fn holder(pieces: &[Piece], address: u32) -> Option<usize> {
    let after = pieces.partition_point(|piece| piece.place.start <= address);
    let last = after.checked_sub(1)?;
    pieces[last].place.contains(&address).then_some(last)
}

struct Reader<'a> {
    file: &'a [u8],
    /// Where the section of data begins in the file.
    section: u32,
    /// Where the section of code begins in the file.
    code: u32,
    segments: Segments,
    names: Vec<&'a str>,
    symbols: Vec<SymbolInfo<'a>>,
}

impl Reader<'_> {
    fn layout(&self, relocations: Vec<(&str, RelocSectionReader<'_>)>) -> Result<Layout> {
        let mut pieces: Vec<Piece> = Vec::new();
        let all = 0..self.symbols.len() as u32;
        let mut places: Vec<_> = all.filter_map(|symbol| self.place(symbol)).collect();
        places.sort_by_key(|(place, _)| place.start);
        for (place, constant) in places {
            match pieces.last_mut() {
                Some(last) if place.start < last.place.end => {
                    last.place.end = last.place.end.max(place.end);
                    last.constant &= constant;
                }
                _ => pieces.push(Piece {
                    place,
                    constant,
                    location: false,
                    refers: Vec::new(),
                }),
            }
        }
        let mut beside: HashMap<u32, Vec<usize>> = HashMap::new();
        let (mut copied, mut put) = (Vec::new(), HashSet::new());
        let mut named: HashMap<u32, Named> = HashMap::new();
        for (name, list) in relocations {
            for entry in list.entries() {
                let entry = entry?;
                match (name, entry.ty) {
                    ("reloc.CODE", RelocationType::TableIndexSleb) => {
                        let slot = self.number(self.code + entry.offset)?;
                        named.entry(slot).or_default().by_others = true;
                    }
                    ("reloc.DATA", RelocationType::TableIndexI32) => {
                        let byte = self.section + entry.offset;
                        let named = named.entry(self.word(byte)?).or_default();
                        let at = self.address(byte);
                        match at.and_then(|at| holder(&pieces, at)) {
                            Some(piece) => named.pieces.push(piece),
                            None => named.by_others = true,
                        }
                    }
                    ("reloc.CODE", _) => {
                        let Some((address, piece)) = self.target(&pieces, &entry)? else {
                            continue;
                        };
                        put.insert(address);
                        if !pieces[piece].place.contains(&address) {
                            beside.entry(address).or_default().push(piece);
                        }
                    }
                    ("reloc.DATA", _) => {
                        let target = self.target(&pieces, &entry)?;
                        let Some((_, piece)) = target else {
                            continue;
                        };
                        match self.address(self.section + entry.offset) {
                            Some(at) => {
                                let from = holder(&pieces, at)
                                    .context("an address stands where no data is")?;
                                pieces[from].refers.push(piece);
                            }
                            None => copied.push(piece),
                        }
                    }
                    _ => {}
                }
            }
        }
        let locations = pieces.iter().map(|piece| self.is_location(&pieces, piece));
        let locations: Vec<bool> = locations.collect();
        for (piece, location) in pieces.iter_mut().zip(locations) {
            piece.location = location;
        }
        Ok(Layout {
            pieces,
            copied,
            put,
            beside,
            named,
        })
    }

    /// The number that stands at a byte of the file, in WebAssembly's form.
    fn number(&self, byte: u32) -> Result<u32> {
        let bytes = self.file.get(byte as usize..).unwrap_or_default();
        let number = BinaryReader::new(bytes, 0).read_var_i32()?;
        Ok(number as u32)
    }

    /// The word of data that stands at a byte of the file.
    fn word(&self, byte: u32) -> Result<u32> {
        let word = self.file.get(byte as usize..).and_then(<[u8]>::first_chunk);
        let word = word.context("a word of data is not there")?;
        Ok(u32::from_le_bytes(*word))
    }

    /// Whether a piece is a `core::panic::Location`: the address and the length of a path, a line and a column.
    fn is_location(&self, pieces: &[Piece], piece: &Piece) -> bool {
        let [path] = piece.refers[..] else {
            return false;
        };
        let path = &pieces[path].place;
        let bytes = self.segments.data_at(self.file, &piece.place);
        let [address, length, _, _] = bytes.as_chunks::<4>().0[..] else {
            return false;
        };
        let text = self.segments.data_at(self.file, path);
        let text = text.get(..u32::from_le_bytes(length) as usize);
        piece.constant
            && u32::from_le_bytes(address) == path.start
            && text.is_some_and(|text| text.ends_with(b".rs"))
    }

    /// Where a symbol of data lies, and whether it is constant; none for others, and for those without bytes.
    fn place(&self, symbol: u32) -> Option<(Range<u32>, bool)> {
        let SymbolInfo::Data {
            symbol: Some(of), ..
        } = &self.symbols[symbol as usize]
        else {
            return None;
        };
        let first = self.segments.list.get(of.index as usize)?.address?;
        let constant = self.names.get(of.index as usize)?.starts_with(CONSTANTS);
        let first = first + of.offset;
        (of.size > 0).then_some((first..first + of.size, constant))
    }

    /// The address that a relocation puts into place, and the piece that it speaks of.
    fn target(&self, pieces: &[Piece], entry: &RelocationEntry) -> Result<Option<(u32, usize)>> {
        use RelocationType::*;
        match entry.ty {
            MemoryAddrLeb | MemoryAddrSleb | MemoryAddrI32 => {}
            FunctionIndexLeb | TableIndexSleb | TableIndexI32 | TypeIndexLeb | GlobalIndexLeb
            | EventIndexLeb | TableNumberLeb => return Ok(None),
            // Of data that every thread has its own of.
            MemoryAddrTlsSleb => return Ok(None),
            other => bail!("the linker has put {other:?} into place, which is not known"),
        }
        let Some((place, _)) = self.place(entry.index) else {
            return Ok(None);
        };
        let piece = holder(pieces, place.start).context("data has a name and no place")?;
        let address = i64::from(place.start) + entry.addend;
        Ok(Some((u32::try_from(address)?, piece)))
    }

    /// The address of a byte of the file.
    fn address(&self, byte: u32) -> Option<u32> {
        let byte = byte as usize;
        let segment = self
            .segments
            .list
            .iter()
            .find(|of| of.bytes.contains(&byte))?;
        Some(segment.address? + (byte - segment.bytes.start) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::{Layout, Piece};

    #[test]
    fn round_numbers_are_addresses_where_the_linker_put_them() {
        let mut layout = Layout {
            pieces: vec![Piece {
                place: 0x10_f000..0x11_1000,
                constant: true,
                location: false,
                refers: Vec::new(),
            }],
            copied: Vec::new(),
            put: Default::default(),
            beside: Default::default(),
            named: Default::default(),
        };
        let spoken = |layout: &Layout, address| layout.spoken_of(address).count();
        for number in [0x10_fffe, 0x11_0000, 0x11_0001] {
            assert_eq!(spoken(&layout, number), 0, "{number:#x}");
            layout.put.insert(number);
            assert_eq!(spoken(&layout, number), 1, "{number:#x}");
        }
        for number in [0x10_fffd, 0x11_0002, 0x10_f000] {
            assert_eq!(spoken(&layout, number), 1, "{number:#x}");
        }
    }
}
