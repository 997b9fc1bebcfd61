/** Ink from 0 to 1, row by row. */
export interface Ink {
  width: number;
  height: number;
  values: Float32Array;
}

const SIDE = 28;
const BOX = 20;
/** Ink weaker than this is no part of the drawing. */
const FAINT = 0.05;

/**
 * Brings a drawing into the form of the handwritten-digit data sets: cropped to its ink, scaled to fit 20 by 20, and
 * centred by mass in 28 by 28. `null` where there is no ink.
 */
export function centreDigit(ink: Ink): Float32Array | null {
  const box = inkBox(ink);
  if (!box) return null;
  const scale = BOX / Math.max(box.width, box.height);
  const width = Math.max(1, Math.round(box.width * scale));
  const height = Math.max(1, Math.round(box.height * scale));
  const small = new Float32Array(width * height);
  let mass = 0;
  let sumX = 0;
  let sumY = 0;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const value = areaMean(
        ink,
        box.x + (x * box.width) / width,
        box.y + (y * box.height) / height,
        box.width / width,
        box.height / height,
      );
      small[y * width + x] = value;
      mass += value;
      sumX += value * (x + 0.5);
      sumY += value * (y + 0.5);
    }
  }
  const left = clamp(Math.round(SIDE / 2 - sumX / mass), 0, SIDE - width);
  const top = clamp(Math.round(SIDE / 2 - sumY / mass), 0, SIDE - height);
  const image = new Float32Array(SIDE * SIDE);
  for (let y = 0; y < height; y++) image.set(small.subarray(y * width, (y + 1) * width), (top + y) * SIDE + left);
  return image;
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

function inkBox({ width, height, values }: Ink): { x: number; y: number; width: number; height: number } | null {
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if ((values[y * width + x] as number) < FAINT) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
  }
  return right < 0 ? null : { x: left, y: top, width: right - left + 1, height: bottom - top + 1 };
}

/** The mean over a rectangle, whose edges need not lie on pixels. */
function areaMean({ width, values }: Ink, x: number, y: number, w: number, h: number): number {
  let sum = 0;
  for (let row = Math.floor(y); row < y + h - 1e-9; row++) {
    const rowShare = Math.min(row + 1, y + h) - Math.max(row, y);
    for (let column = Math.floor(x); column < x + w - 1e-9; column++) {
      const share = Math.min(column + 1, x + w) - Math.max(column, x);
      sum += rowShare * share * (values[row * width + column] ?? 0);
    }
  }
  return sum / (w * h);
}
