#!/bin/sh
# stepcast.html in headless Firefox: the same answers from another engine of WebAssembly.
#   firefox.sh FOLDER_OF_PROGRAMS SOURCE
BROWSER=firefox-esr exec sh "$(dirname "$0")/page.sh" "$@"
