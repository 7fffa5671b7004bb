/** What providers share, and how one is chosen. */
package org.verbena.transport;
