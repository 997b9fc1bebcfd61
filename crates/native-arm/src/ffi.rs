//! `shim/include/kilim_acl.h` in Rust: the structures, and the table of functions.

use std::ffi::{CStr, c_char, c_void};

use libloading::Library;

/// `KILIM_ACL_ABI`.
pub const ABI: u32 = 4;
pub const MAX_RANK: usize = 6;

pub const OK: i32 = 0;
pub const REFUSED: i32 = 1;

pub const NEON: i32 = 0;
pub const CL: i32 = 1;

/// `kilim_acl_dtype`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ElementType {
    Absent,
    F32,
    F16,
    S32,
    Qasymm8,
    Qasymm8Signed,
    Qsymm8PerChannel,
}

/// `kilim_acl_layout`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
pub enum Layout {
    #[default]
    None,
    Nchw,
    Nhwc,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Tensor {
    pub dtype: ElementType,
    pub layout: Layout,
    pub rank: u32,
    /// Innermost first.
    pub dims: [u32; MAX_RANK],
    pub scales: *const f32,
    pub scale_count: u32,
    pub zero_point: i32,
    pub constant: i32,
    pub data: *const c_void,
}

/// An operator of ACL, made and destroyed by the library.
#[repr(C)]
pub struct Operator {
    opaque: [u8; 0],
}

#[repr(C)]
pub struct Request {
    pub target: i32,
    pub inputs: *const Tensor,
    pub input_count: u32,
    pub outputs: *const Tensor,
    pub output_count: u32,
    pub make: *mut *mut Operator,
    pub reason: *mut c_char,
    pub reason_size: usize,
}

/// `kilim_acl_function`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Function {
    Logistic = 0,
    Tanh = 1,
    Relu = 2,
    BoundedRelu = 3,
    LuBoundedRelu = 4,
    LeakyRelu = 5,
    Elu = 7,
    Sqrt = 10,
    Linear = 11,
    HardSwish = 13,
    Swish = 14,
    Gelu = 15,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ActivationInfo {
    pub enabled: i32,
    pub function: Function,
    pub a: f32,
    pub b: f32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Window {
    pub stride_x: u32,
    pub stride_y: u32,
    pub pad_left: u32,
    pub pad_right: u32,
    pub pad_top: u32,
    pub pad_bottom: u32,
    pub dilation_x: u32,
    pub dilation_y: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ConvolutionInfo {
    pub window: Window,
    pub groups: u32,
    pub activation: ActivationInfo,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DepthwiseConvolutionInfo {
    pub window: Window,
    pub multiplier: u32,
    pub activation: ActivationInfo,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeconvolutionInfo {
    pub window: Window,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FullyConnectedInfo {
    pub activation: ActivationInfo,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GemmInfo {
    pub alpha: f32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MatMulInfo {
    pub transpose_a: i32,
    pub transpose_b: i32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PoolingInfo {
    pub max: i32,
    pub kernel_x: u32,
    pub kernel_y: u32,
    pub window: Window,
    pub exclude_padding: i32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SoftmaxInfo {
    pub beta: f32,
    pub axis: u32,
    pub logarithm: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum BinaryFunction {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    PRelu,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BinaryInfo {
    pub kind: BinaryFunction,
}

/// `kilim_acl_unary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum UnaryFunction {
    Exp = 0,
    Neg = 1,
    Abs = 3,
    Round = 4,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct UnaryInfo {
    pub kind: UnaryFunction,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BatchNormalizationInfo {
    pub epsilon: f32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ConcatenateInfo {
    pub axis: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PermuteInfo {
    pub rank: u32,
    pub order: [u32; 4],
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ResizeInfo {
    pub bilinear: i32,
    pub center: i32,
    pub align_corners: i32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct IntegerProductInfo {
    unused: i32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DequantizeInfo {
    unused: i32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct QuantizeInfo {
    unused: i32,
}

/// The structure of a family: names the function that takes it.
pub trait Family: Send + Sync {
    /// # Safety
    /// All pointers of `request` must be valid for the call.
    unsafe fn ask(&self, functions: &Functions, request: &Request) -> i32;
}

macro_rules! functions {
    (
        families { $($family:ident($info:ty) = $family_symbol:literal;)* }
        others { $($other:ident: fn($($arg:ty),*) $(-> $ret:ty)? = $symbol:literal;)* }
    ) => {
        /// The functions of an opened library.
        pub struct Functions {
            $($family: unsafe extern "C" fn(*const Request, *const $info) -> i32,)*
            $(pub $other: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
        }

        impl Functions {
            /// # Safety
            /// `library` must be a libkilim_acl of [`ABI`], and stay open as long as the functions
            /// are called.
            pub unsafe fn find(library: &Library) -> Result<Functions, libloading::Error> {
                // SAFETY: the symbols of this version have these types, for which the caller vouches.
                unsafe {
                    Ok(Functions {
                        $($family: *library.get($family_symbol)?,)*
                        $($other: *library.get($symbol)?,)*
                    })
                }
            }
        }

        $(impl Family for $info {
            unsafe fn ask(&self, functions: &Functions, request: &Request) -> i32 {
                // SAFETY: the function was found under the name that takes this structure; the
                // caller vouches for the request.
                unsafe { (functions.$family)(request, self) }
            }
        })*
    };
}

functions! {
    families {
        activation(ActivationInfo) = b"kilim_acl_activation\0";
        convolution(ConvolutionInfo) = b"kilim_acl_convolution\0";
        depthwise_convolution(DepthwiseConvolutionInfo) = b"kilim_acl_depthwise_convolution\0";
        deconvolution(DeconvolutionInfo) = b"kilim_acl_deconvolution\0";
        fully_connected(FullyConnectedInfo) = b"kilim_acl_fully_connected\0";
        gemm(GemmInfo) = b"kilim_acl_gemm\0";
        matmul(MatMulInfo) = b"kilim_acl_matmul\0";
        integer_product(IntegerProductInfo) = b"kilim_acl_integer_product\0";
        pooling(PoolingInfo) = b"kilim_acl_pooling\0";
        softmax(SoftmaxInfo) = b"kilim_acl_softmax\0";
        binary(BinaryInfo) = b"kilim_acl_binary\0";
        unary(UnaryInfo) = b"kilim_acl_unary\0";
        batch_normalization(BatchNormalizationInfo) = b"kilim_acl_batch_normalization\0";
        concatenate(ConcatenateInfo) = b"kilim_acl_concatenate\0";
        permute(PermuteInfo) = b"kilim_acl_permute\0";
        resize(ResizeInfo) = b"kilim_acl_resize\0";
        dequantize(DequantizeInfo) = b"kilim_acl_dequantize\0";
        quantize(QuantizeInfo) = b"kilim_acl_quantize\0";
    }
    others {
        build_info: fn() -> *const c_char = b"kilim_acl_build_info\0";
        start: fn(i32, *mut c_char, usize) -> i32 = b"kilim_acl_start\0";
        set_threads: fn(u32) = b"kilim_acl_set_threads\0";
        run: fn(*mut Operator, *const *const c_void, *const *mut c_void, *mut c_char, usize) -> i32 = b"kilim_acl_run\0";
        destroy: fn(*mut Operator) = b"kilim_acl_destroy\0";
    }
}

/// Room for a reason, which ends with a zero byte.
pub struct Reason([c_char; 512]);

impl Reason {
    pub fn new() -> Reason {
        Reason([0; 512])
    }

    pub fn as_mut_ptr(&mut self) -> *mut c_char {
        self.0.as_mut_ptr()
    }

    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// One line, without the white space at its ends.
    pub fn text(&self) -> String {
        let bytes = self.0.map(|c| c.to_ne_bytes()[0]);
        let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        let text = text.to_string_lossy();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
