// Parts of a whole along one axis: the whole is rows of `total` elements. A dispatch treats COUNT parts,
// the elements from `start` on.
#include "shared/index.wgsl"

struct Parts {
    // Where each part ends, relative to `start`.
    ends: array<vec4<u32>, 2>,
    count: u32,
    width: u32,
    total: u32,
    start: u32,
}

struct Params { parts: Parts }

@group(0) @binding(0) var<uniform> p: Params;

// Where an element is in the whole, which part has it, and where it is there.
struct Element { far: u32, part: u32, near: u32 }

fn element(i: u32) -> Element {
    let row = i / p.parts.width;
    let at = i % p.parts.width;
    var part = 0u;
    var begin = 0u;
    loop {
        let end = p.parts.ends[part >> 2u][part & 3u];
        if at < end { break; }
        begin = end;
        part++;
        continuing { break if part >= COUNT; }
    }
    let width = p.parts.ends[part >> 2u][part & 3u] - begin;
    return Element(row * p.parts.total + p.parts.start + at, part, row * width + at - begin);
}
