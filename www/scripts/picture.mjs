// Takes the README's picture of the web app: `node scripts/picture.mjs`, after `cargo xtask build`.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { launch, open, repository, www } from '../test/support/browser.mjs';
import { serve } from '../test/support/server.mjs';

const file = join(repository, 'docs', 'web-app.png');
const server = await serve([['/', join(www, 'dist', 'app')]]);
const browser = await launch();
const { page } = await open(browser, `${server.url}/`);
await page.setViewportSize({ width: 1200, height: 820 });
await page.locator('body[data-state="ready"]').waitFor({ timeout: 60_000 });
await page.waitForTimeout(1000);
await page.screenshot({ path: file });
await browser.close();
await server.close();
console.log(`${file}: ${(statSync(file).size / 1000).toFixed(0)} kB`);
