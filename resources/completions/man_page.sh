#!/bin/sh
# Writes the manual page of a program to standard output, from its own --help: man_page.sh build/release/bin/meshwright > meshwright.1
set -eu
program=$1
quoted() { sed -e 's/\\/\\e/g' -e "s/^\\([.']\\)/\\\\\\&\\1/" -e 's/-/\\-/g'; }
verbs=$("$program" --help | sed -n '/^Subcommands:/,$s/^  \([a-z][a-z]*\) .*/\1/p')

printf '.TH MESHWRIGHT 1 "" "%s" "User Commands"\n' "$("$program" --version)"
cat <<'HEAD'
.SH NAME
meshwright \- plans, runs and simulates sharded training
.SH SYNOPSIS
.B meshwright
.I VERB
.RI [ OPTIONS ]
.SH DESCRIPTION
HEAD
"$program" --help | sed -n 1p | quoted
cat <<'WORDS'
.PP
Results go to standard output, everything else to standard error. A file named
.B \-
is standard input or standard output.
.SH EXAMPLES
.nf
WORDS
"$program" --help | sed -n '/^Examples:/,/^Usage:/{//d;p}' | quoted
printf '.fi\n.SH VERBS\n'
for verb in $verbs; do
    printf '.SS %s\n' "$verb"
    "$program" "$verb" --help | sed -n 1p | quoted
    printf '.PP\n.nf\n'
    "$program" "$verb" --help | sed 1,2d | quoted
    printf '.fi\n'
done
cat <<'TAIL'
.SH EXIT STATUS
.TP
.B 0
all is well
.TP
.B 1
findings at or above \-\-fail\-on
.TP
.B 2
the command line is wrong
.TP
.B 3
a document or path is unreadable, unwritable or invalid
.TP
.B 4
infeasible: it does not fit, or nothing was found; the result is printed all the same
.TP
.B 5
verification found a difference
.TP
.B 6
failed while running
.TP
.B 70
an error of the program itself
.TP
.B 130, 143
interrupted; partial results are kept
.SH ENVIRONMENT
.TP
.B NO_COLOR, CLICOLOR_FORCE
no colours, or colours where there is no terminal
.TP
.B MESHWRIGHT_RESOURCES
the folder with the examples, the hardware catalogue and the models
TAIL
