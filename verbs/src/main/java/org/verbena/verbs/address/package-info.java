/** Addresses of ports and peers: GIDs, routes to them, and rates. */
package org.verbena.verbs.address;
