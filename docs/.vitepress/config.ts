import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'
import { checkSite } from './checkSite.ts'
import { anchorOf, keepLinksInside } from './links.ts'
import { sidebar } from './sidebar.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}
/** In the page itself, because the file is not in the site's folder. */
const mark = `data:image/svg+xml,${encodeURIComponent(readFileSync(new URL('../../assets/console.svg', import.meta.url), 'utf8'))}`
/** Where the edit links lead: the repository of this copy. */
const repository = process.env.REPOSITORY_URL ?? 'https://git.example/outboxd'

/** Finds claim_lost and RATE_LIMIT_REQUESTS as whole words, too. */
const tokenize = (text: string) =>
  text.split(/[^\p{L}\p{N}_]+/u).flatMap((word) => (word.includes('_') ? [word, ...word.split('_')] : [word]))

/** The site of docs/: `npm run docs` in the root builds it. */
export default defineConfig({
  title: 'outboxd',
  description: 'Sends a Postgres outbox to an HTTPS service: each record once, to the cent, inside the rate limit',
  head: [['link', { rel: 'icon', href: mark }]],
  themeConfig: {
    logo: mark,
    siteTitle: `outboxd ${version}`,
    search: {
      provider: 'local',
      options: { miniSearch: { options: { tokenize }, searchOptions: { combineWith: 'AND' } } },
    },
    outline: [2, 3],
    nav: [
      { text: 'Tutorial', link: '/start/tutorial' },
      { text: 'Runbook', link: '/run/runbook' },
      { text: 'Glossary', link: '/reference/glossary' },
    ],
    sidebar,
    editLink: { pattern: `${repository}/edit/main/docs/:path`, text: 'Edit this page' },
  },
  // An address that a page has the reader open.
  ignoreDeadLinks: 'localhostLinks',
  markdown: {
    languageAlias: { promql: 'sql' },
    anchor: { slugify: anchorOf },
    config: keepLinksInside,
  },
  buildEnd: ({ outDir }) => checkSite(outDir),
})
