import { defineConfig } from 'vitepress'
import { checkSite } from './checkSite.ts'
import { anchorOf, keepLinksInside } from './links.ts'
import { drawMermaid } from './mermaid.ts'
import { sidebar } from './sidebar.ts'

/** The site of docs/: `npm run docs` in the root builds it. */
export default defineConfig({
  title: 'outboxd',
  description: 'Sends a Postgres outbox to an HTTPS service: each record once, to the cent, inside the rate limit',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Tutorial', link: '/start/tutorial' },
      { text: 'Runbook', link: '/run/runbook' },
      { text: 'Glossary', link: '/reference/glossary' },
    ],
    sidebar,
  },
  // An address that a page has the reader open.
  ignoreDeadLinks: 'localhostLinks',
  markdown: {
    languageAlias: { promql: 'sql' },
    anchor: { slugify: anchorOf },
    config(md) {
      keepLinksInside(md)
      drawMermaid(md)
    },
  },
  buildEnd: ({ outDir }) => checkSite(outDir),
  // Diagrams are loaded by the two pages that have one.
  vite: { build: { chunkSizeWarningLimit: 5_000 } },
})
