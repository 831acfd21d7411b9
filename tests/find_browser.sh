#!/bin/sh
# The browser test needs Chromium: take an installed one, else let the system or Playwright install it.
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null && exit 0
fi
"$PYTHON" -m playwright install chromium && exit 0
echo "No Chromium and no way to install one: install it and run again." >&2
exit 1
