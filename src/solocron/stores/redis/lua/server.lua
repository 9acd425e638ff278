-- Which server runs this.
return server()
