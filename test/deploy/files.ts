import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkout } from '../support/program.ts'

/** Text of a file of the repository. */
export const read = (path: string) => readFileSync(join(checkout, path), 'utf8')

/** Creates a folder, which is deleted when the run ends (test/support/globalSetup.ts). */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'outboxd-deploy-'))
  return folder
}

/** The blocks of a language below a heading of docs/start/install.md, up to the next heading of the same level. */
export function blocksOf(heading: string, language = 'sh'): string[] {
  const page = read('docs/start/install.md')
  const [, section = ''] = page.split(`## ${heading}\n`)
  const block = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms')
  return [...(section.split('\n## ')[0] ?? '').matchAll(block)].map(([, text = '']) => text)
}
