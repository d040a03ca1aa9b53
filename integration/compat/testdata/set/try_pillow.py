#!/usr/bin/python3
from PIL import Image, ImageDraw, ImageFilter

im = Image.new("RGB", (64, 64), "red")
ImageDraw.Draw(im).text((4, 4), "hi")
for form in ("PNG", "JPEG", "WEBP", "GIF", "TIFF"):
    im.save("/tmp/i", form)
    print(Image.open("/tmp/i").format, end=" ")
print(im.filter(ImageFilter.BLUR).resize((8, 8)).size)
