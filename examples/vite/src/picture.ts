/** A picture as the model expects it: 28 by 28 pixels of grey from 0 to 1, row by row. */
export async function digitPixels(file: Blob): Promise<Float32Array> {
  const picture = await createImageBitmap(file);
  const context = new OffscreenCanvas(28, 28).getContext('2d');
  if (!context) throw new Error('this browser cannot draw');
  context.drawImage(picture, 0, 0, 28, 28);
  const { data } = context.getImageData(0, 0, 28, 28);
  return Float32Array.from({ length: 28 * 28 }, (_, i) => {
    const [red = 0, green = 0, blue = 0] = data.subarray(i * 4, i * 4 + 3);
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255;
  });
}
