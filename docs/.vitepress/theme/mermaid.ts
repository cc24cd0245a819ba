import { useData } from 'vitepress'
import { defineComponent, h, onMounted, ref, watch } from 'vue'

let drawn = 0

/** Draws a diagram in the width of the page, and at its full size after a click. Shows its source until it is drawn, or if scripts are off. */
export const Mermaid = defineComponent({
  props: { code: { type: String, required: true } },
  setup({ code }) {
    const source = decodeURIComponent(code)
    const svg = ref('')
    const { isDark } = useData()
    async function draw() {
      const { default: mermaid } = await import('mermaid')
      mermaid.initialize({ startOnLoad: false, theme: isDark.value ? 'dark' : 'default' })
      drawn += 1
      svg.value = (await mermaid.render(`diagram-${drawn}`, source)).svg
    }
    onMounted(draw)
    watch(isDark, draw)
    return () =>
      svg.value === '' ? h('pre', source) : h('div', { class: 'diagram', innerHTML: svg.value, onClick: zoom })
  },
})

function zoom({ currentTarget }: MouseEvent) {
  const svg = currentTarget instanceof Element ? currentTarget.querySelector('svg') : null
  if (svg !== null) svg.style.width = svg.style.width === '' ? svg.style.maxWidth : ''
}
