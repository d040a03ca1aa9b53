#!/usr/bin/python3
from lxml import etree, html

sheet = etree.XML(
    '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
    '<xsl:template match="/"><o><xsl:value-of select="count(//i)"/></o></xsl:template></xsl:stylesheet>'
)
print(etree.XSLT(sheet)(etree.XML("<a><i/><i/></a>")).getroot().text)
print(html.fromstring("<p>x<b>y</p>").text_content())
