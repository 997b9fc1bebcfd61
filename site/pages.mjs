// The pages of the site in their order: every document of the repository has a place here.
export const SECTIONS = [
  { title: 'Start', pages: ['README.md', 'docs/guide/README.md', 'docs/guide/recipes.md', 'docs/web-app.md'] },
  {
    title: 'Guide',
    pages: [
      'docs/guide/load.md',
      'docs/guide/run.md',
      'docs/guide/pictures-and-sound.md',
      'docs/language-models.md',
      'docs/speech.md',
      'docs/guide/choosing-backends.md',
      'docs/guide/speed.md',
      'docs/guide/errors.md',
      'docs/guide/serving.md',
      'docs/guide/react-and-workers.md',
      'docs/guide/operators.md',
      'docs/convert.md',
    ],
  },
  { title: 'Coming from', pages: ['docs/ort.md', 'docs/guide/from-tfjs.md', 'docs/guide/from-litert.md'] },
  {
    title: 'What is supported',
    pages: [
      'docs/formats.md',
      'docs/operators.md',
      'docs/onnxruntime.md',
      'docs/conformance.md',
      'docs/performance.md',
      'docs/arm.md',
      'SECURITY.md',
    ],
  },
  {
    title: 'Authors of backends and formats',
    pages: [
      'docs/backends.md',
      'docs/page-backends.md',
      'docs/importers.md',
      'docs/attributes.md',
      'docs/placement.md',
      'docs/evidence.md',
    ],
  },
  {
    title: 'Examples',
    pages: [
      'README',
      'camera/README',
      'text/README',
      'chat/README',
      'vite/README',
      'next/README',
      'rust/README',
      'plugin-c/README',
      'plugin-rust/README',
      'plugin-device/README',
      'importer-rust/README',
    ].map((name) => `examples/${name}.md`),
  },
  { title: 'Kilim itself', pages: ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/bench.md', 'CHANGELOG.md'] },
];

/** Documents that have to have a place; those of other folders are for who works in them. */
const PLACED = /^(docs\/.*|examples\/.*|[^/]*)\.md$/;

/** The documents among `files` that have no place, and the places without a document. */
export function misplaced(files) {
  const placed = SECTIONS.flatMap(({ pages }) => pages);
  return [
    ...files.filter((file) => PLACED.test(file) && !placed.includes(file)).map((file) => `${file} has no place in site/pages.mjs`),
    ...placed.filter((file) => !files.includes(file)).map((file) => `site/pages.mjs names ${file}, which is not there`),
  ];
}
