// A document as a page: Markdown as GitHub has it, with links that lead to pages of the site where there is one.
import { dirname, posix } from 'node:path';
import highlight from 'highlight.js';
import MarkdownIt from 'markdown-it';
import anchors from 'markdown-it-anchor';
import { SECTIONS } from './pages.mjs';

const PAGES = new Set(SECTIONS.flatMap(({ pages }) => pages));

const LANGUAGES = {
  ts: 'typescript',
  js: 'javascript',
  sh: 'bash',
  html: 'xml',
  rust: 'rust',
  'rust,no_run': 'rust',
  toml: 'ini',
  c: 'c',
  json: 'json',
};

/** The identifier that GitHub gives a heading. */
const slug = (text) =>
  text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** The address of a document's page, from the root of the site: folders have their README as their index. */
export function addressOf(document) {
  if (document === 'README.md') return 'index.html';
  return document.replace(/README\.md$/, 'index.html').replace(/\.md$/, '.html');
}

/** The address of `to` seen from the page at `from`, both from the root of the site. */
export function relative(from, to) {
  const path = posix.relative(dirname(from), to);
  return path === '' ? posix.basename(to) : path;
}

/** Where a link of a document leads: to a page, to a file that the site has, or to the repository. */
function target(document, link, { repository, files, assets }) {
  if (/^[a-z]+:/i.test(link) || link.startsWith('#')) return link;
  const [path, fragment] = link.split('#');
  const file = posix.normalize(posix.join(dirname(document), path)).replace(/\/$/, '');
  const end = fragment === undefined ? '' : `#${fragment}`;
  if (PAGES.has(file)) return relative(addressOf(document), addressOf(file)) + end;
  if (/\.(png|svg|jpe?g|gif)$/.test(file) && files.includes(file)) {
    assets.add(file);
    return relative(addressOf(document), file);
  }
  const folder = files.some((known) => known.startsWith(`${file}/`));
  if (!folder && !files.includes(file)) throw new Error(`${document} links to ${link}, which is not there`);
  return `${repository}/${folder ? 'tree' : 'blob'}/main/${file}${end}`;
}

/**
 * The page of `document` with the text `markdown`: its title, its HTML, and what the search knows of it, headings and the codes that
 * rows of its tables are about. `site` has the address of the `repository`, the `files` of it, and the `assets` that pages need, which grow.
 */
export function render(document, markdown, site) {
  const found = [];
  const md = new MarkdownIt({
    html: true,
    highlight: (code, language) => {
      const name = LANGUAGES[language];
      return name ? highlight.highlight(code, { language: name }).value : '';
    },
  });
  md.use(anchors, {
    slugify: slug,
    tabIndex: false,
    permalink: anchors.permalink.headerLink({ safariReaderFix: true }),
    callback: (token, { slug: id, title }) => found.push({ id, text: title, level: Number(token.tag.slice(1)) }),
  });
  const ids = new Set();
  md.core.ruler.push('rows', ({ tokens }) => {
    tokens.forEach((token, i) => {
      for (const child of token.children ?? []) {
        for (const name of ['href', 'src']) {
          const link = child.attrGet(name);
          if (link !== null) child.attrSet(name, target(document, link, site));
        }
      }
      // A row whose first cell is a code is found by it, `errors.html#LIMIT` for instance.
      const codes = token.type === 'tr_open' && tokens[i + 1]?.type === 'td_open' ? (tokens[i + 2]?.children ?? []) : [];
      const code = codes.find(({ type }) => type === 'code_inline')?.content;
      if (codes[0]?.type !== 'code_inline' || !/^[\w.:-]+$/.test(code) || ids.has(code)) return;
      ids.add(code);
      token.attrSet('id', code);
      found.push({ id: code, text: code, level: 7 });
    });
  });
  const html = md.render(markdown).replaceAll('<table>', '<div class="table"><table>').replaceAll('</table>', '</table></div>');
  const [first] = found;
  return { title: first?.level === 1 ? first.text : document, html, found };
}

/** The whole page around a document's HTML. `places` are the pages of each section, `{title, pages: [{address, title}]}`. */
export function page(address, { title, html }, places) {
  const at = (to) => relative(address, to);
  const entry = (place) =>
    `<li><a href="${at(place.address)}"${place.address === address ? ' aria-current="page"' : ''}>${escaped(place.title)}</a></li>`;
  const sections = places.map((section) => `<h2>${section.title}</h2>\n<ul>\n${section.pages.map(entry).join('\n')}\n</ul>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}${title === 'Kilim' ? '' : ' · Kilim'}</title>
<link rel="stylesheet" href="${at('style.css')}">
<script type="module" src="${at('search.js')}"></script>
</head>
<body>
<a class="skip" href="#content">To the text</a>
<div class="band"></div>
<header>
<a class="name" href="${at('index.html')}">Kilim</a>
<search><input id="search" type="search" placeholder="Search" aria-label="Search the documents" autocomplete="off" data-root="${at('index.html').replace(/index\.html$/, '')}">
<ul id="found" hidden></ul></search>
</header>
<div class="columns">
<nav aria-label="Documents"><details open><summary>Documents</summary>
${sections.join('\n')}
</details></nav>
<main id="content">
${html}</main>
</div>
</body>
</html>
`;
}
