// Says what is wrong where this Node is too old for outboxd. In the syntax of the oldest Node that anybody may have: with a
// newer one it would end in a SyntaxError before it had said a word.
'use strict'

/** One line for the operator, or '' where this Node will do. */
module.exports = function nodeRefusal() {
  var least = Number(/\d+/.exec(require('../package.json').engines.node)[0])
  var own = process.versions.node
  if (Number(own.split('.')[0]) >= least) return ''
  var what = 'outboxd needs Node ' + least + ' or newer, and this is Node ' + own + ' (' + process.execPath + ')'
  return what + ': install one (https://nodejs.org/en/download), or put one that is there first on the PATH.\n'
}
