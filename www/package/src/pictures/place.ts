import { KilimError } from '../index.js';
import type { PlaceOptions, Rectangle, Size } from './options.js';

/** How a picture gets into a tensor: `crop` of it becomes `scaled` pixels, whose part `shown` stands at `x`, `y` of the `target`. */
export interface Place {
  crop: Rectangle;
  scaled: Size;
  shown: Rectangle;
  x: number;
  y: number;
  target: Size;
}

/**
 * The place of a picture of this size.
 * @throws KilimError `INVALID_VALUE` where `crop` is not in the picture, where options do not go together.
 */
export function placeOf(picture: Size, options: PlaceOptions): Place {
  const { crop = { x: 0, y: 0, ...sizeOf(picture) }, fit = 'stretch', shorter, align } = options;
  if (crop.x + crop.width > picture.width || crop.y + crop.height > picture.height)
    throw new KilimError('INVALID_VALUE', '`crop` is not in the picture', {
      expected: `within ${picture.width} × ${picture.height} pixels`,
      got: `${crop.width} × ${crop.height} at ${crop.x}, ${crop.y}`,
    });
  if (shorter !== undefined && fit !== 'cover') throw alone('shorter', 'cover');
  if (align !== undefined && fit !== 'letterbox') throw alone('align', 'letterbox');
  const { size = crop } = options;
  const target = typeof size === 'number' ? { width: size, height: size } : sizeOf(size);
  if (fit === 'cover') return covering(crop, target, shorter);
  const scaled = fit === 'letterbox' ? within(crop, target) : target;
  const middle = align === 'start' ? 0 : 0.5;
  return {
    crop,
    scaled,
    shown: { x: 0, y: 0, ...scaled },
    x: Math.floor((target.width - scaled.width) * middle),
    y: Math.floor((target.height - scaled.height) * middle),
    target,
  };
}

const sizeOf = ({ width, height }: Size): Size => ({ width, height });

const alone = (option: string, fit: string): KilimError =>
  new KilimError('INVALID_VALUE', `the option \`${option}\` goes with \`fit: '${fit}'\` only`);

/** The largest size of the same shape within the target. */
function within({ width, height }: Size, target: Size): Size {
  const ratio = Math.min(target.width / width, target.height / height);
  return { width: Math.max(1, Math.round(width * ratio)), height: Math.max(1, Math.round(height * ratio)) };
}

/** Sizes and places are those of torchvision's `Resize` and `CenterCrop`: a side is cut off to whole pixels, a place rounded to even. */
function covering(crop: Rectangle, target: Size, shorter: number | undefined): Place {
  const { width, height } = crop;
  const wide = shorter === undefined ? width * target.height > height * target.width : width > height;
  const [least, most] = wide ? [height, width] : [width, height];
  const short = shorter ?? (wide ? target.height : target.width);
  const long = Math.floor((short * most) / least);
  const scaled = wide ? { width: long, height: short } : { width: short, height: long };
  if (scaled.width < target.width || scaled.height < target.height)
    throw new KilimError('INVALID_VALUE', '`shorter` is too small: the picture would not cover the tensor', {
      expected: `${target.width} × ${target.height} pixels or more`,
      got: `${scaled.width} × ${scaled.height}`,
    });
  const x = toEven((scaled.width - target.width) / 2);
  const y = toEven((scaled.height - target.height) / 2);
  return { crop, scaled, shown: { x, y, ...target }, x: 0, y: 0, target };
}

/** A whole number and perhaps a half, rounded to the nearest, a half to the even one. */
function toEven(value: number): number {
  const down = Math.floor(value);
  return value === down ? down : down + (down % 2);
}
