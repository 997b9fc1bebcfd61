// Element types that several shaders are made for.
// Moved without being looked at, by themselves or four words at once.
#type Moved u32 vec2u
#type Moved4 u32 vec2u vec4u
// Computed with, a word each.
#type Word f32 i32 u32
// In memory; sums are f32 whatever they are.
#type Stored f32 f16
