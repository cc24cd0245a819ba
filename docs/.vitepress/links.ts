import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path/posix'
import type { MarkdownRenderer } from 'vitepress'

const checkout = join(import.meta.dirname, '../..')

/** As GitHub makes it, so that a link works there and here. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

/**
 * Pages link to files beside them in the repository. Links to a page of docs/ stay links, and README is the first page.
 * A link to any other file becomes its text, because the site does not have that file. A file that is missing fails the build.
 */
export function keepLinksInside(md: MarkdownRenderer): void {
  md.core.ruler.push('keep-links-inside', ({ tokens, env }) => {
    for (const block of tokens) {
      if (block.type === 'html_block') block.content = pictureAddressesOnSite(block.content)
      const { children } = block
      const open = [] as boolean[]
      for (const token of children ?? []) {
        if (token.type === 'html_inline') token.content = pictureAddressesOnSite(token.content)
        if (token.type === 'link_open') {
          const href = addressOnSite(env.relativePath, token.attrGet('href') ?? '')
          open.push(href !== null)
          if (href === null) token.tag = 'span'
          token.attrs = href === null ? [] : [['href', href]]
          if (href === null) token.type = 'text_open'
        } else if (token.type === 'link_close' && open.pop() === false) {
          token.tag = 'span'
          token.type = 'text_close'
        }
      }
    }
  })
}

/** README's pictures: their addresses begin in the root. */
const pictureAddressesOnSite = (html: string) =>
  html.replaceAll('"docs/pictures/', '"./pictures/').replaceAll('"assets/', '"../assets/')

/** Null: the file is in the repository and not on the site. */
function addressOnSite(page: string, href: string): string | null {
  if (href.startsWith('#') || /^[a-z]+:/.test(href)) return href
  const [path = '', anchor] = href.split('#')
  // The first page includes README, whose links begin in the root.
  const file = normalize(page === 'index.md' ? path : join('docs', dirname(page), path))
  if (!existsSync(join(checkout, file))) throw new Error(`${page}: the link ${href} leads to no file`)
  const site = file === 'README.md' ? 'docs/index.md' : file
  if (!site.startsWith('docs/') || !site.endsWith('.md')) return null
  return `${site.slice('docs'.length)}${anchor === undefined ? '' : `#${anchor}`}`
}
