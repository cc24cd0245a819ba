import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

/** Every path, link and quoted heading that code and docs cite exists. */

const root = join(import.meta.dirname, '..')
/** Packages, and the built site of docs/. */
const isMade = /node_modules|\.vitepress\/(cache|dist)/
const texts = readTexts()

test('the texts were found', () => {
  expect(texts.size).toBeGreaterThan(300)
  expect(allCitations(texts).length).toBeGreaterThan(100)
})

test('every cited file is in the repository, and has the cited section', () => {
  expect(allCitations(texts).filter(isBroken).map(inMessage)).toEqual([])
})

test('every link leads to a file in the repository, and to a heading in it', () => {
  expect(allLinks(texts).filter(isBroken).map(inMessage)).toEqual([])
})

describe('the rules themselves', () => {
  test.each([
    ['src/a.ts', '/** As design.md says. */'],
    ['src/a.ts', '/** @see docs/nothing.md */'],
    ['src/a.ts', '/** @see docs/reference/interface.md, 12.3 */'],
    ['src/a.ts', '/** docs/why/contract.md, "What nobody says" */'],
    ['test/a.test.ts', '// src/service/nothing.ts does it'],
    ['docs/a.md', 'Code: `src/nothing.ts`.'],
  ])('%s with %s is caught', (from, text) => {
    expect(allCitations(new Map([[from, text]])).filter(isBroken)).toHaveLength(1)
  })

  test.each([
    ['docs/a.md', '[a](nothing.md)'],
    ['docs/a.md', '[a](budget.md#nothing)'],
    ['README.md', '[a](budget.md)'],
    ['docs/why/budget.md', '[a](#nothing)'],
  ])('%s with the link %s is caught', (from, text) => {
    expect(allLinks(new Map([[from, text]])).filter(isBroken)).toHaveLength(1)
  })

  test.each([
    ['src/a.ts', '/** docs/reference/interface.md, 4.2 and 7; README.md, "Commands" */'],
    ['src/a.ts', '/** docs/why/contract.md,\n * "What an answer\n * means" */'],
    ['docs/a.md', '[a](why/budget.md#the-proof), [b](../README.md), [c](https://example.com/x.md)'],
  ])('%s with %j passes', (from, text) => {
    const found = new Map([[from, text]])
    expect([...allCitations(found), ...allLinks(found)].filter(isBroken)).toEqual([])
  })
})

interface Citation {
  from: string
  /** From the repository's root. */
  to: string
  /** A heading's number, its whole text, or its anchor; null: the file alone. */
  section: { number: string } | { title: string } | { anchor: string } | null
}

/** Paths below our folders, and pages by their name, in whatever comments, strings and docs say. */
function allCitations(from: ReadonlyMap<string, string>): Citation[] {
  return [...from].flatMap(([path, whole]) => {
    const text = whole.replace(/\n\s*(\*|\/\/|--|#)?\s*/g, ' ')
    const files = text.matchAll(/(?<![\w./${}-])(?:src|test|bench|docs|migrations|deploy)\/[\w./-]*\w/g)
    const pages = text.matchAll(
      /(?<![\w./'-])((?:\.\.\/)?(?:[\w-]+\/)*[\w-]+\.md)\b(?!#)(?:, (?:section )?(\d[\d.]*\d|\d)|, "([^"]+)")?/g,
    )
    return [
      ...[...files]
        .filter(([to]) => !placeholder.test(to) && !to.endsWith('.md'))
        .map(([to]) => ({ from: path, to, section: null })),
      ...[...pages].map(([, to = '', number, title]) => {
        const byTitle = title === undefined ? null : { title }
        return { from: path, to: pagePath(path, to), section: number === undefined ? byTitle : { number } }
      }),
    ]
  })
}

/** As in `tools/bench/NAME.ts` and `migrations/000N_subject.sql`. */
const placeholder = /\b[A-Z]{3,}\b|000N/

/** A page is cited from the root. Within docs/, and in the pages that tools/docs generates, it is cited beside the page. */
function pagePath(from: string, to: string): string {
  const isGenerator = from.startsWith('tools/docs/')
  const beside = normalize(join(isGenerator ? 'docs/reference' : dirname(from), to))
  return (from.endsWith('.md') || isGenerator) && existsSync(join(root, beside)) ? beside : to
}

/** Markdown links with a path or an anchor; addresses elsewhere are not ours to follow. */
function allLinks(from: ReadonlyMap<string, string>): Citation[] {
  return [...from]
    .filter(([path]) => path.endsWith('.md'))
    .flatMap(([path, text]) =>
      [...text.matchAll(/\]\(([^)#\s]*)(?:#([^)\s]+))?\)/g)]
        .filter(([, to = '']) => !/^[a-z]+:/.test(to))
        .map(([, to = '', anchor]) => ({
          from: path,
          to: to === '' ? path : normalize(join(dirname(path), to)),
          section: anchor === undefined ? null : { anchor },
        })),
    )
}

function isBroken({ to, section }: Citation): boolean {
  if (isMade.test(to)) return false
  if (!isThere(to)) return true
  if (section === null) return false
  const headings = headingsOf(readFileSync(join(root, to), 'utf8'))
  if ('number' in section) return !headings.some((heading) => heading.replace(/\.? .*/, '') === section.number)
  if ('title' in section) return !headings.includes(section.title)
  return !headings.some((heading) => anchorOf(heading) === section.anchor)
}

/** A file, a folder, or what vitest takes for a filter: the beginning of a file's name. */
function isThere(to: string): boolean {
  const path = join(root, to)
  if (existsSync(path)) return true
  return existsSync(dirname(path)) && readdirSync(dirname(path)).some((name) => name.startsWith(`${basename(path)}.`))
}

/** Rows of a table that begin with a number count as headings: endpoints are numbered there. */
function headingsOf(page: string): string[] {
  return [...page.matchAll(/^(?:#+ |\| (?=\d+\.\d+ \|))(.+)$/gm)].map(([, heading = '']) =>
    heading.replace(/^(\d+\.\d+) \|.*/, '$1'),
  )
}

/** Returns the anchor that GitHub gives a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

function inMessage({ from, to, section }: Citation): string {
  return `${from} cites ${to}${section === null ? '' : `, ${Object.values(section)[0]}`}`
}

function readTexts(): Map<string, string> {
  const folders = ['src', 'test', 'tools', 'docs', 'migrations', 'deploy', 'mappings', '.ci']
  const paths = [
    ...folders.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((each) => each.isFile() && !isMade.test(each.parentPath))
        .map((each) => relative(root, join(each.parentPath, each.name))),
    ),
    ...['README.md', 'CONTRIBUTING.md', 'Dockerfile', 'package.json'].filter((name) => existsSync(join(root, name))),
  ]
  return new Map(
    paths
      .filter((path) => path !== 'test/citations.test.ts')
      .map((path) => [path, readFileSync(join(root, path), 'utf8')]),
  )
}
