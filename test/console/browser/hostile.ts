import type { Page } from 'playwright-core'

/** A text that would run a script, add an element or turn the direction of writing if a page did not escape it. */
export const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(2) data-hostile><b data-hostile>\u202eesrever\u2066 javascript:alert(3)`

/** Nearly as long as PAYLOAD_MAX_BYTES allows, without a blank to break the line at. */
export const longText = 'y'.repeat(900_000)

/** Lists the harm that a hostile text does to a page: an element, turned text beside it, an endless page. */
export function readHarm(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const harm = []
    if (document.querySelector('[data-hostile]')) harm.push('an element that a record brought')
    if (document.querySelector('[href^="javascript:" i], [onerror], [onclick]')) harm.push('a script in an attribute')
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) {
      if (!/[\\u202a-\\u202e\\u2066-\\u2069]/.test(texts.currentNode.data)) continue
      const { parentElement } = texts.currentNode
      if (parentElement.tagName !== 'TEXTAREA' && !/isolate|plaintext/.test(getComputedStyle(parentElement).unicodeBidi)) harm.push('text that turns others: ' + parentElement.outerHTML.slice(0, 200))
    }
    if (document.documentElement.scrollHeight > 20_000) harm.push('a page of ' + document.documentElement.scrollHeight + ' px')
    return harm
  })()`)
}
