/** How many steps a message takes, counted through the JDK's debug interface. */
package org.verbena.it.steps;
