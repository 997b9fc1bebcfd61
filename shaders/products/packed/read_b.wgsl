// Packed numbers of four columns of b. What is behind its last row or column is another number of b: a is zero behind
// its last column, and nobody stores a column that is not there.

#if TILE == expert
// The first column of the row's expert.
var<private> first_column: u32;
#else
const first_column = 0u;
#endif

fn column_at(n: u32) -> u32 {
    return first_column + min(n, p.product.n - 1u);
}

// Scale and zero point of a block of a column.
fn scaling(n: u32, block: u32) -> vec2<f32> {
#if ZEROS == none
    let zero = p.weights.middle;
#elif ZEROS == packed
    let i = n * p.weights.zero_row + block;
    let zero = f32(number_of(zeros[word_of(i, p.zero_packing)], i, p.zero_packing));
#else
    let zero = f32(zeros[n * p.weights.blocks + block]);
#endif
    return vec2<f32>(f32(scales[n * p.weights.blocks + block]), zero);
}

#if READ_B == words
// A word of a column, which has all numbers of a block that are asked for.
struct Column {
    word: u32,
    scaling: vec2<f32>,
}

fn column_of(k: u32, n: u32, block: u32) -> Column {
    let column = column_at(n);
    return Column(b[word_of(column * p.weights.row + k, p.packing)], scaling(column, block));
}

// Four numbers from row `k` of b on.
fn quad_of(column: Column, k: u32) -> vec4<f32> {
    let bits = vec4<u32>(column.word >> low_bit(k, p.packing)) >> (vec4<u32>(0u, 1u, 2u, 3u) * p.packing.bits);
    let numbers = vec4<f32>(bits & vec4<u32>(0xffffffffu >> (32u - p.packing.bits)));
    return (numbers - column.scaling.y) * column.scaling.x;
}

// The words of four columns.
struct Columns { c0: Column, c1: Column, c2: Column, c3: Column }

fn columns_of(k: u32, n: u32) -> Columns {
    let row = min(k, (p.product.k - 1u) & 0xfffffffcu);
    let block = row / p.weights.block;
    return Columns(column_of(row, n, block), column_of(row, n + 1u, block), column_of(row, n + 2u, block), column_of(row, n + 3u, block));
}

// Four rows of each column.
fn quads_of(columns: Columns, k: u32) -> mat4x4<f32> {
    return mat4x4<f32>(quad_of(columns.c0, k), quad_of(columns.c1, k), quad_of(columns.c2, k), quad_of(columns.c3, k));
}
#else
fn number_at(k: u32, n: u32) -> f32 {
    let row = min(k, p.product.k - 1u);
    let column = column_at(n);
#if READ_B == listed
    let block = min(u32(groups[row]), p.weights.blocks - 1u);
#else
    let block = row / p.weights.block;
#endif
    let i = column * p.weights.row + row;
    let number = f32(number_of(b[word_of(i, p.packing)], i, p.packing));
    let s = scaling(column, block);
    return (number - s.y) * s.x;
}

fn quad_at(k: u32, n: u32) -> vec4<f32> {
    return vec4<f32>(number_at(k, n), number_at(k + 1u, n), number_at(k + 2u, n), number_at(k + 3u, n));
}

struct Columns { n: u32 }

fn columns_of(k: u32, n: u32) -> Columns {
    return Columns(n);
}

fn quads_of(columns: Columns, k: u32) -> mat4x4<f32> {
    let n = columns.n;
    return mat4x4<f32>(quad_at(k, n), quad_at(k, n + 1u), quad_at(k, n + 2u), quad_at(k, n + 3u));
}
#endif

// Four rows of b at four columns.
fn block_b(k: u32, n: u32, base: u32) -> mat4x4<f32> {
    return transpose(quads_of(columns_of(k, n), k));
}
