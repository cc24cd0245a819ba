#!/usr/bin/env node
// Says which Node outboxd needs where this one is too old for the rest, and starts the program where it is not. In the
// syntax of the oldest Node that anybody may have: with a newer one it would end in a SyntaxError before it had said a word.
'use strict'

var needed = require('../package.json').engines.node
var least = Number(/\d+/.exec(needed)[0])
var own = process.versions.node

if (Number(own.split('.')[0]) >= least) require('./start.cjs')
else refuse()

function refuse() {
  var what = 'outboxd needs Node ' + least + ' or newer, and this is Node ' + own + ' (' + process.execPath + ').'
  var remedy = 'Install one (https://nodejs.org/en/download), or put one that is there first on the PATH.'
  process.stderr.write(what + '\n  ' + remedy + '\n')
  process.exit(2)
}
