import { KilimError } from 'kilim';

/** Frames that the rate is a mean of. */
const FRAMES = 20;

/**
 * Gives picture after picture of the camera to `onFrame`, the next when the work on the one before is done, until it is stopped.
 * @throws KilimError `UNSUPPORTED` where there are no cameras, `IO` where the visitor allows none or there is none.
 */
export async function startCamera(onFrame: (frame: ImageBitmap, rate: number) => Promise<unknown>): Promise<() => void> {
  const devices = (navigator as { mediaDevices?: MediaDevices }).mediaDevices;
  if (!devices) throw new KilimError('UNSUPPORTED', 'there is no camera here', { hint: 'only pages that are served over https have one' });
  let stream: MediaStream;
  try {
    stream = await devices.getUserMedia({ video: { facingMode: 'environment' } });
  } catch (error) {
    throw new KilimError('IO', `the camera cannot be had: ${error}`, {}, error);
  }
  const video = document.createElement('video');
  video.muted = true;
  video.playsInline = true;
  video.srcObject = stream;
  let live = true;
  const stop = () => {
    live = false;
    for (const track of stream.getTracks()) track.stop();
    video.srcObject = null;
  };
  for (const track of stream.getTracks()) track.addEventListener('ended', stop);
  try {
    await video.play();
  } catch (error) {
    stop();
    throw new KilimError('IO', `the camera gives no pictures: ${error}`, {}, error);
  }

  async function loop(): Promise<void> {
    const times: number[] = [];
    while (live) {
      const frame = await createImageBitmap(video);
      times.push(performance.now());
      if (times.length > FRAMES) times.shift();
      const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
      await onFrame(frame, span > 0 ? (1000 * (times.length - 1)) / span : 0);
      // A model that is faster than the camera waits for the screen.
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
  }
  loop().catch(stop);
  return stop;
}
