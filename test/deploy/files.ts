import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { checkout } from '../support/program.ts'

/** Text of a file of the repository. */
export const read = (path: string) => readFileSync(join(checkout, path), 'utf8')

/** Creates a folder that is deleted when the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'outboxd-deploy-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** The blocks of a language below a heading of docs/start/install.md, up to the next heading of the same level. */
export function blocksOf(heading: string, language = 'sh'): string[] {
  const page = read('docs/start/install.md')
  const [, section = ''] = page.split(`## ${heading}\n`)
  const block = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms')
  return [...(section.split('\n## ')[0] ?? '').matchAll(block)].map(([, text = '']) => text)
}
