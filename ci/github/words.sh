# The meaning of an exit code of sparsek-gate, as one word. A file to source.
# shellcheck shell=bash

word_of() {
  case $1 in
  0) echo pass ;;
  1) echo regressed ;;
  2) echo usage ;;
  3) echo environment ;;
  4) echo baseline ;;
  5) echo failed ;;
  6) echo inconclusive ;;
  130) echo interrupted ;;
  *) echo internal ;;
  esac
}
