import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Fails the build if a link of the built pages leads nowhere, or a page loads something from another host. */
export function checkSite(folder: string): void {
  const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.html'))
  const texts = new Map(pages.map((path) => [`/${path}`, readFileSync(join(folder, path), 'utf8')]))
  const ids = new Map([...texts].map(([path, text]) => [path, new Set(matches(text, /\sid="([^"]*)"/g))]))
  const faults = [...texts].flatMap(([path, text]) => [
    ...matches(text, /<a\s[^>]*?href="([^"]*)"/g)
      .filter((href) => !/^[a-z]+:/.test(href) && !isThere(path, href))
      .map((href) => `${path}: the link ${href} leads nowhere`),
    ...matches(text, /<(?:script|img|iframe|link)\s[^>]*?(?:src|href)="((?:https?:)?\/\/[^"]*)"/g).map(
      (address) => `${path}: loads ${address}`,
    ),
  ])
  const styles = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.css'))
  for (const path of styles)
    for (const address of matches(readFileSync(join(folder, path), 'utf8'), /url\(["']?((?:https?:)?\/\/[^)]*)\)/g))
      faults.push(`/${path}: loads ${address}`)
  if (faults.length > 0) throw new Error(`The site is broken:\n${[...new Set(faults)].join('\n')}`)

  function isThere(from: string, href: string): boolean {
    const { pathname, hash } = new URL(href.replaceAll('&amp;', '&'), `http://site${from}`)
    const path = decodeURIComponent(pathname)
    const page = [path, `${path}.html`, `${path}index.html`].find((each) => texts.has(each))
    if (page === undefined) return existsSync(join(folder, path))
    return hash === '' || ids.get(page)?.has(decodeURIComponent(hash.slice(1))) === true
  }
}

function matches(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, found = '']) => found)
}
