import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** What docs/why/architecture.md says about functions and locks is true. */

const root = join(import.meta.dirname, '..')
const page = read('docs/why/architecture.md')

test('the way of a record has ten steps, and a file of each row exports its functions', () => {
  const rows = [...section('The way of a record').matchAll(/^\| (\d* ?)\|[^|]+\|([^|]+)\|([^|]+)\|$/gm)]
  expect(rows.filter(([, step]) => step !== '')).toHaveLength(10)
  expect(rows.length).toBeGreaterThan(10)
  for (const [, , files = '', functions = ''] of rows) {
    const exported = quoted(files).flatMap((file) => [
      ...read(file).matchAll(/^export (?:(?:async )?function|class) (\w+)/gm),
    ])
    expect(exported.map(([, name]) => name)).toEqual(expect.arrayContaining(quoted(functions)))
  }
})

test('the list has every advisory lock that the source takes', () => {
  const keys = sources().flatMap((text) => [...text.matchAll(/advisory\w*lock\w*\((\d+)/g)].map(([, key]) => key))
  expect(new Set(keys).size).toBeGreaterThan(3)
  const list = section('Advisory locks')
  expect([...new Set(keys)].filter((key) => !list.includes(`| ${key}`))).toEqual([])
})

function section(title: string): string {
  return page.split(/^## /m).find((each) => each.startsWith(`${title}\n`)) ?? ''
}

const quoted = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)

function sources(): string[] {
  return ['src', 'migrations'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((each) => each.isFile())
      .map((each) => readFileSync(join(each.parentPath, each.name), 'utf8')),
  )
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
