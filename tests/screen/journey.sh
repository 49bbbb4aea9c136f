#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A newcomer's way through the window, on a screen of its own: set up a run, launch it, look at every page, zoom, stop it,
# close the window while another run goes on, open it again. Asserts what can be asserted without looking.
#   SHARDSCOPE_BIN   folder of the programs (ctest sets it)
#   SHOTS            folder for the pictures, to be looked at; none are kept without it, and none waited for
#   SCREEN, QT_SCALE_FACTOR, THEME    e.g. 2560x1600, 2, dark; default 1280x800, 1, light
set -u
bin=${SHARDSCOPE_BIN:?names the folder of the built programs}
source_folder=${SHARDSCOPE_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
screen=${SCREEN:-1280x800}
scale=${QT_SCALE_FACTOR:-1}
theme=${THEME:-light}

for program in Xvfb xdotool import compare identify; do
  command -v "$program" >/dev/null || { echo "SKIPPED: $program is missing (apt-get install xvfb xdotool imagemagick)"; exit 0; }
done
for program in shardscope shardscope-cli shardscope-worker; do
  [ -x "$bin/$program" ] || { echo "SKIPPED: $bin/$program is not built"; exit 0; }
done

work=$(mktemp -d "${TMPDIR:-/tmp}/a journey.XXXXXX")
shots=${SHOTS:-$work/shots}
export XDG_DATA_HOME="$work/data" XDG_RUNTIME_DIR="$work/run" XDG_CONFIG_HOME="$work/config" XDG_CACHE_HOME="$work/cache"
export QT_QPA_PLATFORM=xcb QT_SCALE_FACTOR=$scale LC_ALL=C.UTF-8 PATH="$bin:$PATH"
unset WAYLAND_DISPLAY DISPLAY QT_QPA_PLATFORMTHEME
mkdir -p "$shots" "$XDG_DATA_HOME" "$XDG_CONFIG_HOME" "$XDG_CACHE_HOME" "$work/my texts"
mkdir -m 700 "$XDG_RUNTIME_DIR"
runs="$XDG_DATA_HOME/shardscope/runs"
cp "$source_folder"/docs/*.md "$work/my texts/"
started=() # processes of this script

clean_up() {
  local state pid
  for state in "$runs"/*/state.json; do # the supervisor that the window started is nobody's child
    [ -e "$state" ] || continue
    case $(state_of "${state%/state.json}") in done | failed | lost) continue ;; esac
    pid=$(grep -o '"pid":[0-9]*,"pid_start_ticks"' "$state" | grep -o '[0-9]\+')
    [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null # its ranks end with it
  done
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null; done
  wait 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

say() { echo "[$SECONDS s] $*"; }

fail() {
  echo "FAILED: $*"
  import -silent -window root "$shots/failure.png" 2>/dev/null && [ -n "${SHOTS:-}" ] && echo "see $shots/failure.png"
  tail -n 20 "$work"/*.log # what the programs wrote
  exit 1
}

# until SECONDS WHAT COMMAND…: waits until the command succeeds
until_true() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ $SECONDS -lt $end ] || fail "not seen in time: $what"
    sleep 0.2
  done
}

# The run's own state and step stand behind those of its ranks.
state_of() { sed -n 's/.*"state":"\([a-z]*\)".*/\1/p' "$1/state.json" 2>/dev/null; }
step_of() { sed -n 's/.*"state":"[a-z]*","step":\([0-9]*\).*/\1/p' "$1/state.json" 2>/dev/null; }
is_state() { [ "$(state_of "$1")" = "$2" ]; }
past_step() { [ "$(step_of "$1")" -gt "$2" ] 2>/dev/null; }
alive() { kill -0 "$1" 2>/dev/null; }

# Windows of the process $window_pid, by the beginning of their title
window_named() {
  local id
  for id in $(xdotool search --onlyvisible --pid "$window_pid" 2>/dev/null); do
    case $(xdotool getwindowname "$id" 2>/dev/null) in "$1"*) echo "$id"; return 0 ;; esac
  done
  return 1
}
has_window() { window_named "$1" >/dev/null; }
has_no_window() { ! has_window "$1"; }
focus() { xdotool windowfocus --sync "$(window_named "$1")" || fail "there is no window $1 to give the focus to"; }
at() { xdotool mousemove $(($1 * scale)) $(($2 * scale)); } # logical pixels
keys() { local key; for key in "$@"; do xdotool key "$key"; sleep 0.15; done; }

# For a picture that somebody will look at: what is drawn a moment later belongs on it. Nothing that is asserted needs it.
let_settle() { [ -z "${SHOTS:-}" ] || sleep "$1"; }

take() { # take NAME: a picture of the screen, which must show something
  shows_something() { import -silent -window root "$1" && [ "$(identify -format %k "$1")" -gt 60 ]; }
  until_true 60 "a picture $1 that is not blank: 60 colours" shows_something "$shots/$1.png"
}
# The timeline's lanes
take_lanes() { import -silent -window root -crop "$((860 * scale))x$((540 * scale))+$((400 * scale))+$((215 * scale))" +repage "$1"; }
same_picture() { [ "$(compare -metric AE "$1" "$2" null: 2>&1)" = 0 ]; }
# take_settled FILE: the lanes, once two pictures in a row are the same
take_settled() {
  lanes_settled() { take_lanes "$work/settling.png" && sleep 0.5 && take_lanes "$1" && same_picture "$1" "$work/settling.png"; }
  until_true 60 "lanes that do not move" lanes_settled "$1"
}
# differs FILE: the lanes are another picture than that
differs() { take_lanes "$work/now.png" && ! same_picture "$work/now.png" "$1"; }
page_is() { grep -qx "page=$1" "$XDG_CONFIG_HOME/shardscope/shardscope.conf" 2>/dev/null; }
go_to() { # go_to KEY PAGE SHOT
  keys "$1"
  until_true 60 "page $2 after $1" page_is "$2"
  let_settle 2 # what it reads
  take "$3"
}

open_window() { # open_window LOG
  "$bin/shardscope" --theme "$theme" >"$work/$1.log" 2>&1 &
  window_pid=$!
  started+=("$window_pid")
  until_true 60 "the window" has_window ""
}

Xvfb -displayfd 3 -noreset -screen 0 "${screen}x24" -nolisten tcp 3>"$work/display" 2>"$work/xvfb.log" &
started+=($!)
until_true 60 "a screen of Xvfb's" test -s "$work/display"
DISPLAY=:$(cat "$work/display")
export DISPLAY

say "an empty window"
open_window window
until_true 60 "the title of an empty window" has_window "Shardscope"
focus "Shardscope"
at 700 600 && xdotool click 1
let_settle 1
take 01-empty

say "a new run, by keys"
keys ctrl+n
until_true 60 "the dialog of a new run" has_window "New run"
focus "New run"
keys Home                                       # the smallest model
keys Tab && xdotool type --delay 10 "$work/my texts" # data
keys Tab Tab Tab && xdotool type 2              # past browse and sequence length: ranks
keys Tab End                                    # device: the last one is cpu
keys Tab Tab Tab Tab && xdotool type 100000     # past share, strategy, precision: steps
let_settle 1.5
take 02-new-run
first_there() { compgen -G "$runs/*/state.json" >/dev/null; }
# Launch works once the machine and the data have been looked at.
launched() {
  first_there && return
  has_window "New run" && keys ctrl+Return
  sleep 1
  first_there
}
until_true 60 "a run's folder after Launch" launched
first=$(dirname "$(compgen -G "$runs/*/state.json")")
name=$(basename "$first")
until_true 60 "the dialog closed" has_no_window "New run"
until_true 60 "$name running" is_state "$first" running
until_true 60 "steps of $name" past_step "$first" 8
for wanted in '"preset": *"tiny"' '"ranks": *2' '"steps": *100000' '"device": *"cpu"' "my texts"; do
  grep -q "$wanted" "$first/run.json" || fail "$first/run.json has no $wanted: the form was not filled in as typed"
done
until_true 60 "the run's name as the window's title" has_window "$name"

say "its pages"
focus "$name"
page_is live || go_to ctrl+1 live 03-live
let_settle 1.5
take 03-live
go_to ctrl+2 timeline 04-timeline
go_to ctrl+3 memory 05-memory
go_to ctrl+4 logs 06-logs
go_to ctrl+1 live 07-live-again
go_to ctrl+2 timeline 08-timeline-again
sleep 2 # what the timeline reads: it is looked at closely

say "pause, zoom"
keys ctrl+shift+p
until_true 60 "$name paused" is_state "$first" paused
at 800 420 && xdotool click 1 && keys Escape
take_settled "$work/before.png" # a paused run's timeline stands still
keys w w w
until_true 60 "a timeline that W zooms" differs "$work/before.png"
take_settled "$work/keys.png"
for _ in 1 2 3; do xdotool click 4; sleep 0.15; done
until_true 60 "a timeline that the wheel zooms" differs "$work/keys.png"
take_settled "$work/wheel.png"
take 09-zoomed
at 800 255 && xdotool click 1 # a phase of rank 0
let_settle 1
take 10-span
keys Escape s
for _ in 1 2; do xdotool click 5; sleep 0.15; done
until_true 60 "a timeline that S and the wheel zoom out of" differs "$work/wheel.png"
paused_at=$(step_of "$first")
keys ctrl+shift+p
until_true 60 "steps after the pause" past_step "$first" "$paused_at"

say "stop"
keys ctrl+shift+s
until_true 60 "$name done" is_state "$first" "done"
grep -q '"checkpoint_step":[0-9]' "$first/state.json" || fail "$name was stopped without a checkpoint"
compgen -G "$first/checkpoints/*" >/dev/null || fail "$first/checkpoints is empty"
keys ctrl+1
sleep 2 # the window looks at a run's state each second: until it knows, there is nothing to resume
take 11-stopped

say "resume"
stopped_at=$(step_of "$first")
keys ctrl+shift+g
until_true 60 "$name going on" is_state "$first" running
[ -d "$first/attempt-2" ] || fail "$first has no second attempt"
until_true 60 "steps after those of the first attempt" past_step "$first" $((stopped_at + 3))
sleep 2 # as above: nothing to stop
take 12-resumed
keys ctrl+shift+s
until_true 60 "$name done again" is_state "$first" "done"

say "another run from a terminal; the window closes and it goes on"
second="$runs/from a terminal"
"$bin/shardscope-cli" run --preset tiny --data "$work/my texts" --ranks 2 --device cpu --steps 100000 --out "$second" \
  >"$work/terminal.log" 2>&1 </dev/null &
second_pid=$!
started+=("$second_pid")
until_true 60 "steps of the second run" past_step "$second" 2
sleep 2 # as above: it says of the runs that it knows of that they go on
take 13-two-runs
focus "$name"
keys ctrl+q
window_gone() { ! alive "$window_pid"; }
until_true 60 "the window closed" window_gone
wait "$window_pid" || fail "the window ended with exit code $?"
grep -q "goes on without the window" "$work/window.log" || fail "the window did not say that a run goes on"
here=$(step_of "$second")
until_true 60 "steps of the second run without a window" past_step "$second" $((here + 3))
alive "$second_pid" || fail "the second run's supervisor ended with the window"

say "the window again"
open_window window-again
until_true 60 "the last run ($name) in the window that was opened again" has_window "$name"
focus "$name"
let_settle 2
sleep 1 # time to open another page
take 14-reopened
page_is live || fail "the page that was open last is not open again"
go_to ctrl+2 timeline 15-reopened-timeline
keys ctrl+q
until_true 60 "the window closed by Ctrl+Q" window_gone
wait "$window_pid" || fail "the window ended with exit code $? after Ctrl+Q"
"$bin/shardscope-cli" stop "$second" >"$work/stop.log" 2>&1 || fail "stop: $(cat "$work/stop.log")"
until_true 60 "the second run done" is_state "$second" "done"
wait "$second_pid" || fail "shardscope-cli run ended with exit code $?: $(tail -n 3 "$work/terminal.log")"
say "PASSED"
