// Apart from outboxd.cjs: a Node that is too old cannot read the next line.
import('../dist/main.js')
