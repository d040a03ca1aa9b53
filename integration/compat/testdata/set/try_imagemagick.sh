#!/bin/bash
set -e
PATH=/usr/bin:/bin
convert -size 64x64 xc:red -fill white -draw 'rectangle 8,8 20,20' -resize 32x32 /tmp/a.png
convert /tmp/a.png -blur 0x2 /tmp/a.jpg
identify -format '%m %w %h\n' /tmp/a.png /tmp/a.jpg
