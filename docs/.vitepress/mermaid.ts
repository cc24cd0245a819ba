import type { MarkdownRenderer } from 'vitepress'

/** Code blocks in mermaid become the component `Mermaid` (theme/index.ts), which draws them in the browser. */
export function drawMermaid(md: MarkdownRenderer): void {
  const { fence } = md.renderer.rules
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const token = tokens[index]
    return token?.info.trim() === 'mermaid'
      ? `<Mermaid code="${encodeURIComponent(token.content)}" />`
      : (fence?.(tokens, index, ...rest) ?? '')
  }
}
