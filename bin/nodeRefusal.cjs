// Says what is wrong where this Node is too old for outboxd. In the syntax of the oldest Node that anybody may have: with a
// newer one it would end in a SyntaxError before it had said a word.
'use strict'

/** One line for the operator, or '' where this Node will do. On Node 22 only the sandbox runs, as a library for tests. */
module.exports = function nodeRefusal(isForSandbox) {
  var own = process.versions.node
  var version = own.split('.').map(Number)
  if (version[0] >= 26 || (version[0] === 24 && version[1] >= 16)) return ''
  if (isForSandbox && version[0] >= 22) return ''
  var what = (isForSandbox ? 'outboxd/sandbox needs Node 22' : 'outboxd needs Node 24.16 or Node 26') + ' or newer'
  var found = 'this is Node ' + own + ' (' + process.execPath + ')'
  return (
    what +
    ', and ' +
    found +
    ': install one (https://nodejs.org/en/download), or put one that is there first on the PATH.\n'
  )
}
