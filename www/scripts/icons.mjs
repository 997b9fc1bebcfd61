// Draws the web app's icons from its favicon: `node scripts/icons.mjs`, after the favicon has changed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, www } from '../test/support/browser.mjs';

const folder = join(www, 'app', 'public');
const drawing = readFileSync(join(folder, 'favicon.svg'), 'utf8');
const browser = await launch();
const page = await browser.newPage();
for (const side of [192, 512]) {
  // What a system cuts off around an icon is of its ground.
  await page.setViewportSize({ width: side, height: side });
  await page.setContent(
    `<style>body { margin: 0; display: grid; place-items: center; height: 100vh; background: #1f2a44 } svg { width: 70vw; height: 70vw }</style>${drawing}`,
  );
  await page.screenshot({ path: join(folder, `icon-${side}.png`) });
}
await browser.close();
