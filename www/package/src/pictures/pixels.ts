import { describe } from '../describe.js';
import { made } from '../given.js';
import { KilimError } from '../index.js';
import type { Rectangle, Size } from './options.js';
import type { Plane } from './resample.js';

/** Pixels as `ImageData` has them: red, green, blue and alpha, a byte each, row after row. */
export interface Pixels extends Size {
  data: Uint8Array | Uint8ClampedArray;
}

/** A picture that can be read at once. Only pages and workers have the kinds that are drawn; pixels are taken everywhere. */
export type Picture = Pixels | ImageBitmap | VideoFrame | OffscreenCanvas | HTMLCanvasElement | HTMLImageElement | HTMLVideoElement;

/**
 * Decodes a picture's file, turned as it says; transparent pixels keep their colours.
 *
 *     const picture = await readPicture(await (await fetch('cat.jpg')).blob());
 *
 * @throws KilimError `IO` where the browser cannot read it, `UNSUPPORTED` where there is no browser, `INVALID_VALUE` for what is no file.
 */
export async function readPicture(file: Blob): Promise<ImageBitmap> {
  if (!made('a picture file', () => file instanceof Blob))
    throw new KilimError('INVALID_VALUE', 'a picture file is a Blob or a File', { got: describe(file) });
  if (typeof createImageBitmap === 'undefined')
    throw new KilimError('UNSUPPORTED', 'only browsers decode picture files', { hint: 'give pixels: { width, height, data }' });
  try {
    return await createImageBitmap(file, { premultiplyAlpha: 'none' });
  } catch (error) {
    const name = file instanceof File ? `\`${file.name}\`` : 'the file';
    throw new KilimError(
      'IO',
      `${name} is not a picture that this browser can read`,
      { got: file.type || 'unknown type', hint: 'give a PNG, JPEG, WebP or GIF file' },
      error,
    );
  }
}

/**
 * The size of a picture in pixels.
 * @throws KilimError `INVALID_VALUE` for what is none, for one that has not come yet and for one that was closed.
 */
export function sizeOf(picture: Picture): Size {
  if (typeof picture !== 'object' || picture === null) throw noPicture(picture);
  if (picture instanceof Blob)
    throw new KilimError('INVALID_VALUE', 'a picture file is decoded first', {
      hint: 'give `await readPicture(file)`, or call `Tensor.from`',
    });
  const { width, height } = ownSize(picture);
  if (!Number.isSafeInteger(width) || !Number.isSafeInteger(height)) throw noPicture(picture);
  if (width <= 0 || height <= 0)
    throw new KilimError('INVALID_VALUE', 'the picture has no pixels', { hint: 'it has not come yet, or was closed' });
  if (isPixels(picture) && picture.data.length !== 4 * width * height)
    throw new KilimError('SHAPE', 'the bytes are not those of a picture of that size', {
      expected: `${4 * width * height} bytes, four to a pixel`,
      got: `${picture.data.length} bytes`,
    });
  return { width, height };
}

function ownSize(picture: object): Size {
  const { naturalWidth, naturalHeight, videoWidth, videoHeight, displayWidth, displayHeight, width, height } = picture as Record<
    string,
    number
  >;
  const [w, h] = [naturalWidth ?? videoWidth ?? displayWidth ?? width, naturalHeight ?? videoHeight ?? displayHeight ?? height];
  return { width: w as number, height: h as number };
}

export function isPixels(picture: Picture): picture is Pixels {
  const { data } = picture as Partial<Pixels>;
  return data instanceof Uint8ClampedArray || data instanceof Uint8Array;
}

function noPicture(given: unknown): KilimError {
  return new KilimError('INVALID_VALUE', 'this is no picture', {
    expected: 'ImageData, ImageBitmap, VideoFrame, a canvas, an image, a video or { width, height, data }',
    got: describe(given),
  });
}

/**
 * The pixels of a part of a picture.
 * @throws KilimError `IO` where the picture is of another origin that does not allow it, `LIMIT` where there is no memory for it.
 */
export function pixelsOf(picture: Picture, crop: Rectangle): Plane {
  const { x, y, width, height } = crop;
  if (isPixels(picture)) {
    const row = 4 * picture.width;
    return { data: picture.data, start: y * row + 4 * x, row, stride: 4, width, height };
  }
  if (typeof OffscreenCanvas === 'undefined')
    throw new KilimError('UNSUPPORTED', 'only browsers draw pictures', { hint: 'give pixels: { width, height, data }' });
  const whole = ownSize(picture);
  let drawn: ImageData;
  try {
    const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
    if (!context) throw new RangeError('there is no canvas of that size');
    context.drawImage(picture, -x, -y, whole.width, whole.height);
    drawn = context.getImageData(0, 0, width, height);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'SecurityError')
      throw new KilimError(
        'IO',
        'the picture is of another origin, whose pixels the page may not read',
        { hint: 'its server must allow that by CORS; an `<img>` or a `<video>` also needs `crossorigin`' },
        error,
      );
    if (error instanceof DOMException && error.name === 'InvalidStateError')
      throw new KilimError('INVALID_VALUE', 'the picture is broken, or was closed', {}, error);
    if (error instanceof TypeError) throw noPicture(picture);
    throw new KilimError('LIMIT', 'this browser cannot draw a picture of that size', { got: `${width} × ${height} pixels` }, error);
  }
  return { data: drawn.data, start: 0, row: 4 * width, stride: 4, width, height };
}

/** The picture in front of a colour: each channel is `(byte · alpha + colour · (255 − alpha)) / 255`, rounded. */
export function blended(picture: Plane, background: readonly number[]): Plane {
  return mapped(picture, 3, (data, at, out, to) => {
    const alpha = data[at + 3] as number;
    for (let c = 0; c < 3; c++)
      out[to + c] = Math.round(((data[at + c] as number) * alpha + (background[c] as number) * (255 - alpha)) / 255);
  });
}

/** ITU-R 601-2 luma in the whole numbers of Pillow's `convert('L')`. */
export function greyed(picture: Plane): Plane {
  return mapped(picture, 1, (data, at, out, to) => {
    const sum = 19595 * (data[at] as number) + 38470 * (data[at + 1] as number) + 7471 * (data[at + 2] as number);
    out[to] = (sum + 0x8000) >> 16;
  });
}

type Map = (data: Plane['data'], at: number, out: Uint8ClampedArray, to: number) => void;

function mapped({ data, start, row, stride, width, height }: Plane, channels: number, map: Map): Plane {
  const out = new Uint8ClampedArray(width * height * channels);
  for (let y = 0, to = 0; y < height; y++) for (let x = 0; x < width; x++, to += channels) map(data, start + y * row + x * stride, out, to);
  return { data: out, start: 0, row: width * channels, stride: channels, width, height };
}
