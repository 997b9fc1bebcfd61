// Every link of the site leads to a file of the site, and to a place in it. Addresses of other sites are not asked.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const decoded = (text) => decodeURIComponent(text.replaceAll('&amp;', '&'));

/** The links in the pages below `folder` that lead nowhere, as texts, and how many were looked at. */
export function broken(folder) {
  const pages = readdirSync(folder, { recursive: true })
    .map((name) => join(folder, name))
    .filter((file) => file.endsWith('.html'));
  const texts = new Map(pages.map((file) => [file, readFileSync(file, 'utf8')]));
  const ids = new Map();
  const idsOf = (file) => {
    if (!ids.has(file))
      ids.set(file, new Set([...(texts.get(file) ?? '').matchAll(/\s(?:id|name)="([^"]*)"/g)].map(([, id]) => decoded(id))));
    return ids.get(file);
  };
  let looked = 0;
  const wrong = [];
  for (const [file, text] of texts) {
    for (const [, link] of text.matchAll(/<(?:a|link|img|script)\b[^>]*?\s(?:href|src)="([^"]*)"/g)) {
      if (/^[a-z][a-z+.-]*:/i.test(link)) continue;
      looked += 1;
      const [path, fragment] = link.split('#');
      let to = path === '' ? file : join(dirname(file), decoded(path));
      if (existsSync(to) && statSync(to).isDirectory()) to = join(to, 'index.html');
      const place = `${relative(folder, file)} links to ${link}`;
      if (!existsSync(to)) wrong.push(`${place}, which is not there`);
      else if (fragment && to.endsWith('.html') && !idsOf(to).has(decoded(fragment))) wrong.push(`${place}, and there is no such place`);
    }
  }
  return { looked, wrong };
}
