// A picture becomes a part of a tensor: along rows first, rounded to bytes, then along columns, in the integers of the CPU's way
// (`www/package/src/pictures/resample.ts`), so that both give the same bytes. `www/package/src/pictures/plan.ts` writes the plan.

struct Plan {
  // The tensor's picture, where the shown part of it begins, and that part's size.
  size: vec2<u32>,
  place: vec2<u32>,
  shown: vec2<u32>,
  // The first row of the picture that columns need, and how many they need.
  top: u32,
  rows: u32,
  channels: u32,
  // The first element of the picture in the tensor, and from there to the next of a channel and of a pixel.
  start: u32,
  channel_stride: u32,
  pixel_stride: u32,
  // 1 where a pixel becomes its luma.
  grey: u32,
  // Red, green and blue from the low byte on behind translucent pixels; -1 where alpha stays.
  background: i32,
  // Which byte of a pixel each channel is, and the byte around the shown part, from the low byte on.
  order: u32,
  padding: u32,
  // The places among the numbers: of weights across and down (the first pixel of each place, how many, `most` weights to a place),
  // and of the words that the bytes of each channel become.
  across: u32,
  across_most: u32,
  down: u32,
  down_most: u32,
  words: u32,
  numbers: array<i32>,
}

@group(0) @binding(0) var<storage, read> plan: Plan;
@group(0) @binding(1) var picture: texture_2d<f32>;
@group(0) @binding(2) var<storage, read_write> wide: array<u32>;
@group(0) @binding(3) var<storage, read_write> elements: array<u32>;

// Bits behind the point of a weight.
const BITS = 22u;
const HALF = 2097152;

fn byte_of(word: u32, number: u32) -> u32 {
  return (word >> (8u * number)) & 255u;
}

fn pixel(x: i32, y: i32) -> vec4<i32> {
  var bytes = vec4<i32>(round(textureLoad(picture, vec2<i32>(x, y), 0) * 255.0));
  if (plan.background >= 0) {
    let color = u32(plan.background);
    let behind = vec3<i32>(vec3<u32>(byte_of(color, 0u), byte_of(color, 1u), byte_of(color, 2u)));
    let sum = bytes.rgb * bytes.a + behind * (255 - bytes.a);
    bytes = vec4<i32>((2 * sum + 255) / 510, 255);
  }
  if (plan.grey == 1u) {
    let luma = (19595 * bytes.r + 38470 * bytes.g + 7471 * bytes.b + 32768) >> 16u;
    bytes = vec4<i32>(luma);
  }
  return bytes;
}

fn bytes_of(sums: vec4<i32>) -> vec4<i32> {
  return clamp(sums >> vec4<u32>(BITS), vec4<i32>(0), vec4<i32>(255));
}

@compute @workgroup_size(8, 8)
fn across(@builtin(global_invocation_id) at: vec3<u32>) {
  if (at.x >= plan.shown.x || at.y >= plan.rows) {
    return;
  }
  let first = plan.numbers[plan.across + at.x];
  let count = plan.numbers[plan.across + plan.shown.x + at.x];
  let weights = plan.across + 2u * plan.shown.x + at.x * plan.across_most;
  var sums = vec4<i32>(HALF);
  for (var i = 0; i < count; i++) {
    sums += pixel(first + i, i32(plan.top + at.y)) * plan.numbers[weights + u32(i)];
  }
  let bytes = vec4<u32>(bytes_of(sums));
  wide[at.y * plan.shown.x + at.x] = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}

@compute @workgroup_size(8, 8)
fn down(@builtin(global_invocation_id) at: vec3<u32>) {
  if (any(at.xy >= plan.size)) {
    return;
  }
  var word = 0u;
  let inside = all(at.xy >= plan.place) && all(at.xy < plan.place + plan.shown);
  if (inside) {
    let here = at.xy - plan.place;
    let first = plan.numbers[plan.down + here.y];
    let count = plan.numbers[plan.down + plan.shown.y + here.y];
    let weights = plan.down + 2u * plan.shown.y + here.y * plan.down_most;
    var sums = vec4<i32>(HALF);
    for (var i = 0; i < count; i++) {
      let row = u32(first + i) - plan.top;
      let other = wide[row * plan.shown.x + here.x];
      let bytes = vec4<u32>(byte_of(other, 0u), byte_of(other, 1u), byte_of(other, 2u), byte_of(other, 3u));
      sums += vec4<i32>(bytes) * plan.numbers[weights + u32(i)];
    }
    let bytes = vec4<u32>(bytes_of(sums));
    word = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
  }
  let to = plan.start + (at.y * plan.size.x + at.x) * plan.pixel_stride;
  for (var channel = 0u; channel < plan.channels; channel++) {
    var byte = byte_of(plan.padding, channel);
    if (inside) {
      byte = byte_of(word, byte_of(plan.order, channel));
    }
    elements[to + channel * plan.channel_stride] = bitcast<u32>(plan.numbers[plan.words + 256u * channel + byte]);
  }
}
