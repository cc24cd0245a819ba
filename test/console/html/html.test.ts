import { describe, expect, test } from 'vitest'
import { type HtmlValue, html } from '../../../src/console/html/html.ts'
import { hostile } from '../browser/hostile.ts'

describe('html', () => {
  test('escapes a value in text and in an attribute, so that it ends neither', () => {
    const text = `<>&"'`
    expect(html`<p title="${text}">${text}</p>`.toString()).toBe(
      '<p title="&lt;&gt;&amp;&#34;&#39;">&lt;&gt;&amp;&#34;&#39;</p>',
    )
    const harmless = html`<p title="${hostile}">${hostile}</p>`.toString()
    expect(harmless.match(/[<>"]/g)?.join('')).toBe('<"">' + '<>')
  })

  test('takes a part as it is, each member of a list, and nothing for a missing value', () => {
    const part = html`<b>${'<'}</b>`
    expect(html`${part}${[part, '<', ['&', 1, 2n]]}${null}${undefined}${''}`.toString()).toBe(
      '<b>&lt;</b><b>&lt;</b>&lt;&amp;12',
    )
  })

  test('takes no text for a part, also if it was made to look like one', () => {
    const faked = { toString: () => '<script>' } as unknown as HtmlValue
    expect(() => html`${faked}`).toThrow()
    expect(html`${JSON.parse('["<script>"]') as HtmlValue}`.toString()).toBe('&lt;script&gt;')
  })

  test.each([
    'javascript:alert(1)',
    ' javascript:alert(1)',
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example/',
    'data:text/html,x',
    'records',
  ])('refuses %s as an address', (address) => {
    expect(() => html`<a href="${address}">x</a>`).toThrow('not a path of this console')
    expect(() => html`<form action="${address}"></form>`).toThrow()
    expect(() => html`<button formaction="${address}"></button>`).toThrow()
    expect(() => html`<img src="${[address]}">`).toThrow()
    expect(() => html`<a class="x" href="${address}">x</a>`).toThrow()
  })

  test.each(['/', '/records?key=a&state=b', '#main'])('takes %s as an address', (address) => {
    expect(html`<a href="${address}">x</a>`.toString()).toContain(`href="${address.replace('&', '&amp;')}"`)
  })

  test('refuses a text where quotes do not hold it', () => {
    expect(() => html`<option ${'selected'}>`).toThrow('only a part')
    expect(() => html`<p title=${'x'}>`).toThrow('only a part')
    expect(() => html`<p title='${'x'}'>`).toThrow('only a part')
    expect(() => html`<${'script'}>`).not.toThrow() // is text, since `<` is escaped or begins no tag
    expect(html`<option${html` selected`}${''}>`.toString()).toBe('<option selected>')
  })

  test('refuses a part in an attribute, which it could end', () => {
    expect(() => html`<p title="${html`" onclick="`}">`).toThrow('no part')
    expect(() => html`<a href="${html`/" onclick="`}">`).toThrow('no part')
  })

  test('refuses any value in a script, a style or a comment', () => {
    expect(() => html`<script>${'x'}</script>`).toThrow('no value may stand here')
    expect(() => html`<style>${'x'}</style>`).toThrow('no value may stand here')
    expect(() => html`<!-- ${'x'} -->`).toThrow('no value may stand here')
    expect(() => html`<script src="${'/a.js'}">${'x'}</script>`).toThrow('no value may stand here')
    expect(() => html`<script src="${'https://evil.example/'}"></script>`).toThrow('not a path')
    expect(() => html`<script src="${'/a.js'}"></script>${'x'}`).not.toThrow()
  })
})
