#!/bin/sh
':' //; exec node -- "$0" "$@"
// sh runs the line above, because only after `--` Node does not read --env-file itself. Node sees a text and a comment.
// Starts the program where this Node can run it, and says which one it needs where it cannot: in the syntax of the oldest, too.
'use strict'

var refusal = require('./nodeRefusal.cjs')()

if (refusal === '') require('./start.cjs')
else refuse()

function refuse() {
  process.stderr.write(refusal)
  process.exit(2)
}
