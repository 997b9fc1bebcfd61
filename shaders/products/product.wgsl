// c = alpha * a b + beta * bias of matrices of m x k and k x n elements; strides count elements.
#type ReadB n4 k4 strided

struct Product {
    // Structures in uniforms begin and end at 16 bytes.
    @align(16) m: u32,
    n: u32,
    k: u32,
    a_row: u32,
    a_col: u32,
    b_row: u32,
    b_col: u32,
    c_row: u32,
    c_col: u32,
    c_batch: u32,
    bias_row: u32,
    bias_col: u32,
    bias_batch: u32,
    alpha: f32,
    beta: f32,
}
