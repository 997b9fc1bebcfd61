// Where the windows of an image lie.
struct Im2col {
    // Structures in uniforms begin and end at 16 bytes.
    @align(16) c_image: u32,
    positions: u32,
    out_w: u32,
    in_h: u32,
    in_w: u32,
    kernel_w: u32,
    channels: u32,
    x_image: u32,
    x_h: u32,
    x_w: u32,
    x_c: u32,
    stride_h: u32,
    stride_w: u32,
    dilation_h: u32,
    dilation_w: u32,
    pad_h: i32,
    pad_w: i32,
}
