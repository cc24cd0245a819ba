import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const docs = join(import.meta.dirname, '..')

const groups = {
  Start: inFolder('start', [
    'install',
    'tutorial',
    'outbox',
    'mapping',
    'tutorial-erp',
    'change-capture',
    'sandbox',
    'discover',
    'other-databases',
  ]),
  Run: inFolder('run', ['operations', 'runbook', 'console', 'restore', 'retention', 'slo', 'tracing']),
  Why: inFolder('why', [
    'guarantee',
    'states',
    'contract',
    'budget',
    'security',
    'performance',
    'beside',
    'architecture',
  ]),
  Reference: inFolder('reference', pagesIn('reference')),
}

const pages = ['start', 'run', 'why'].flatMap((folder) => inFolder(folder, pagesIn(folder)))
const unlisted = pages.filter((page) => !Object.values(groups).flat().includes(page))
if (unlisted.length > 0) throw new Error(`docs/.vitepress/sidebar.ts has no place for ${unlisted.join(', ')}`)

export const sidebar = Object.entries(groups).map(([text, pages]) => ({
  text,
  items: pages.map((page) => ({ text: titleOf(page), link: `/${page}` })),
}))

function inFolder(folder: string, names: string[]): string[] {
  return names.map((name) => `${folder}/${name}`)
}

function pagesIn(folder: string): string[] {
  return readdirSync(join(docs, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.slice(0, -'.md'.length))
}

function titleOf(page: string): string {
  const title = readFileSync(join(docs, `${page}.md`), 'utf8').match(/^# (.+)$/m)?.[1]
  if (title === undefined) throw new Error(`docs/${page}.md has no title`)
  return title
}
